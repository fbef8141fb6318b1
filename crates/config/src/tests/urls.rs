//! Host groups as URLs.

use super::*;

fn listed(url: &str) -> String {
    from_url(url).unwrap_err().to_string()
}

#[test]
fn ssh() {
    let group = from_url("ssh://node1").unwrap();
    let command = texts(&["ssh"]);
    let expected =
        HostGroup::new("node1", LauncherKind::Ssh { command }, vec![Host::named("node1")]);
    assert_eq!(group, expected);
    let url = "SSH://ann%40b@node1:2222/?workers=4&python=/opt/a%20b&directory=%2Fscratch\
               &memory=64GB&resources.gpu=2&resources.licence%3Amatlab=1&environment.A=x%3Dy&environment.B=&addresses=a,b&addresses=c&preload=fft,x.so&ports=1-2\
               &heartbeat=0.5&start_timeout=7&encryption=none&trusted=false&command=ssh%20-v";
    let command = texts(&["ssh", "-v", "-p", "2222"]);
    let expected = HostGroup {
        workers: 4,
        python: Some("/opt/a b".into()),
        directory: Some("/scratch".into()),
        environment: pairs(&[("A", "x=y"), ("B", "")]),
        memory: Some(64_000_000_000),
        resources: vec![("gpu".into(), 2), ("licence:matlab".into(), 1)],
        preload: texts(&["fft", "x.so"]),
        addresses: texts(&["a", "b", "c"]),
        ports: Some((1, 2)),
        heartbeat: Duration::from_millis(500),
        start_timeout: Duration::from_secs(7),
        encryption: false,
        trusted: false,
        ..HostGroup::new("node1", LauncherKind::Ssh { command }, vec![Host::named("ann@b@node1")])
    };
    assert_eq!(from_url(url).unwrap(), expected);
    let group = from_url("ssh://[fd00::7]:22").unwrap();
    assert_eq!((group.name.as_str(), group.hosts[0].name.as_str()), ("fd00::7", "fd00::7"));
    assert_eq!(from_url("ssh://gpu[01-08]:23").unwrap().hosts.len(), 8);
}

#[test]
fn local_and_program() {
    let local = |prefix: &[&str]| LauncherKind::Local { prefix: texts(prefix) };
    let here = HostGroup::new("local", local(&[]), vec![Host::named("localhost")]);
    for url in ["local:", "local://", "local:///"] {
        assert_eq!(from_url(url).unwrap(), here, "{url}");
    }
    for url in ["local:?workers=2", "local://?workers=2"] {
        assert_eq!(from_url(url).unwrap(), HostGroup { workers: 2, ..here.clone() }, "{url}");
    }
    let group = from_url("local://n1?prefix=ip%20netns%20exec%20n1").unwrap();
    let prefix = local(&["ip", "netns", "exec", "n1"]);
    assert_eq!(group, HostGroup::new("n1", prefix, vec![Host::named("n1")]));
    let group = from_url("program:/opt/start%20-v?hosts=a,b&hosts=n[1-2]:3").unwrap();
    let command = texts(&["/opt/start", "-v"]);
    assert_eq!(group.name, "start");
    assert_eq!(group.launcher, LauncherKind::Program { command });
    let names: Vec<&str> = group.hosts.iter().map(|host| host.name.as_str()).collect();
    assert_eq!(names, ["a", "b", "n1", "n2"]);
}

#[test]
fn slurm() {
    let group = from_url("slurm:").unwrap();
    let batch = LauncherKind::Batch(Box::default());
    assert_eq!(group, HostGroup::new("slurm", batch, vec![Host::named("slurm-1")]));
    assert_eq!(group.start_timeout, QUEUE_TIMEOUT);
    let url = "slurm://lab?nodes=2&prefix=env%20SLURM_CONF=/b.conf&partition=long&memory=4G\
               &wall_time=1-00:00:00&cores=2&exclusive=true&options=--qos=a,b&options=--nice&request=job";
    let batch = Batch {
        prefix: texts(&["env", "SLURM_CONF=/b.conf"]),
        request: RequestForm::Job,
        queue: Some("long".into()),
        memory: Some("4G".into()),
        wall_time: Some(Duration::from_secs(86_400)),
        cores: 2,
        exclusive: true,
        options: texts(&["--qos=a,b", "--nice"]),
        ..Batch::default()
    };
    let hosts = vec![Host::named("lab-1"), Host::named("lab-2")];
    let expected = HostGroup::new("lab", LauncherKind::Batch(Box::new(batch)), hosts);
    assert_eq!(from_url(url).unwrap(), expected);
}

#[test]
fn lists_and_numbers_of_batch_systems() {
    let batch = |url: &str| match from_url(url).unwrap().launcher {
        LauncherKind::Batch(batch) => batch,
        other => panic!("{other:?}"),
    };
    let url = "slurm:?skip=--no-requeue,--job-name&skip=--mem&wall_time=3600&memory=64000";
    let found = batch(url);
    assert_eq!(found.skip, texts(&["--no-requeue", "--job-name", "--mem"]));
    assert_eq!(found.wall_time, Some(Duration::from_secs(3600)));
    assert_eq!(found.memory.as_deref(), Some("64000"));
    let table = read("[server.a]\nlauncher = 'slurm'\nmemory = 64000\n", "").unwrap();
    let LauncherKind::Batch(of_table) = &table[0].launcher else { panic!("{table:?}") };
    assert_eq!(of_table.memory, found.memory);
}

#[test]
fn an_option_of_a_batch_system_is_no_key() {
    let text = listed("slurm:?qos=long");
    let expected = "there is no key `qos`: an option of the batch system that has no key is written as in \
                    options = [\"--qos=long\"], in a URL as in options=--qos=long";
    assert!(text.ends_with(expected), "{text}");
    assert!(listed("gridengine:?zzz=1").ends_with("options=-l h_vmem=4G"));
    assert!(listed("ssh://a?zzz=1").contains("the keys of a server are launcher, "));
}

#[test]
fn grid_engine() {
    let url = "gridengine:?queue=all.q&project=me&parallel_environment=mp&workers=4&request=job";
    let batch = Batch {
        system: BatchSystem::GridEngine,
        request: RequestForm::Job,
        queue: Some("all.q".into()),
        account: Some("me".into()),
        parallel_environment: Some("mp".into()),
        ..Batch::default()
    };
    let hosts = vec![Host::named("gridengine-1")];
    let group = HostGroup::new("gridengine", LauncherKind::Batch(Box::new(batch)), hosts);
    assert_eq!(from_url(url).unwrap(), HostGroup { workers: 4, ..group });
    for (url, expected) in [
        (
            "gridengine:?partition=a",
            "`partition` has no meaning for the launcher \"gridengine\", only for \"slurm\"",
        ),
        (
            "slurm:?queue=a",
            "`queue` has no meaning for the launcher \"slurm\", only for \"gridengine\"",
        ),
        (
            "gridengine:?request=direct",
            "`request = \"direct\"` has no meaning for the launcher \"gridengine\", only for \"slurm\"",
        ),
    ] {
        let listed = from_url(url).unwrap_err().to_string();
        assert!(listed.contains(expected), "{listed}");
    }
}

#[test]
fn what_is_wrong() {
    for (url, expected) in [
        (
            "node1",
            "is not the URL of a server: write ssh://HOST, local:, slurm:, gridengine:, htcondor:, pbs:, torque:, lsf:, flux:, mpi:, session:NAME, gridrpc://HOST, gridrpc+unix://PATH or program:COMMAND",
        ),
        (
            "http://a",
            "is not the URL of a server: write ssh://HOST, local:, slurm:, gridengine:, htcondor:, pbs:, torque:, lsf:, flux:, mpi:, session:NAME, gridrpc://HOST, gridrpc+unix://PATH or program:COMMAND",
        ),
        (
            "ssh:",
            "is not the URL of a server: write ssh://HOST, local:, slurm:, gridengine:, htcondor:, pbs:, torque:, lsf:, flux:, mpi:, session:NAME, gridrpc://HOST, gridrpc+unix://PATH or program:COMMAND",
        ),
        ("ssh://", "names no host: write it behind the slashes, as in ssh://node1"),
        ("ssh://:22", "names no host: write it behind the slashes, as in ssh://node1"),
        (
            "ssh://a/b",
            "has \"/b\" behind the host, which means nothing: write ?directory=PATH for a directory",
        ),
        (
            "ssh://a:0",
            "`port` is \"0\": write a number from 1 to 65535; workers are written as ?workers=4",
        ),
        (
            "ssh://me:pw@a",
            "has a password, which ssh does not take: give ssh a key, and write ssh://user@host",
        ),
        ("ssh://a?workers", "has \"workers\" in its query: write KEY=VALUE, with & between"),
        ("ssh://a?wrokers=2", "there is no key `wrokers`: did you mean `workers`?"),
        (
            "ssh://a?workers=x",
            "`workers` is \"x\": write a whole number from 0 to 100000; 0 is one for each processor",
        ),
        (
            "ssh://a?workers=1&workers=2",
            "`workers` is there twice: take one of the two out, or give it another name",
        ),
        ("ssh://a?hosts=b", "has the key `hosts` in its query: write the host after the slashes"),
        (
            "ssh://a?resources=gpu",
            "has the key `resources` in its query: write resources.NAME=NUMBER for each resource",
        ),
        ("ssh://a?resources.gpu=two", "`resources.gpu` is \"two\": write a whole number from 0 on"),
        (
            "ssh://a?environment=A",
            "has the key `environment` in its query: write environment.NAME=VALUE for each variable",
        ),
        (
            "ssh://a%2",
            "has \"%2\": write % with two hexadecimal digits that stand for a byte of UTF-8",
        ),
        (
            "ssh://%ff",
            "has \"%ff\": write % with two hexadecimal digits that stand for a byte of UTF-8",
        ),
        (
            "ssh://-oProxyCommand=x",
            "`hosts` has \"-oProxyCommand=x\": names of hosts do not begin with `-`: write the host's \
             name or address",
        ),
    ] {
        assert_eq!(listed(url), format!("`{url}`: {expected}"));
    }
    assert!(listed("program:a").contains("there are no `hosts`"));
    assert!(listed("program:?hosts=a").contains("`command` is empty"));
    assert!(listed(&format!("ssh://{}", "a".repeat(70_000))).contains("has more than 65536 bytes"));
}

#[test]
fn sessions() {
    let group = from_url("session:My_work-2.0?heartbeat=2&output=kept&resources.gpu=1").unwrap();
    let name = "My_work-2.0";
    let expected = HostGroup {
        heartbeat: Duration::from_secs(2),
        output: WorkerOutput::Kept,
        resources: numbers(&[("gpu", 1)]),
        ..HostGroup::new(name, LauncherKind::Session { name: name.into() }, vec![Host::named(name)])
    };
    assert_eq!(group, expected);
    assert!(group.trusted && !group.encryption && group.compression == Compression::Off);
    assert_eq!(from_url(&format!("session:{}", "a".repeat(100))).unwrap().name.len(), 100);
    let long = "a".repeat(101);
    for name in ["", ".work", "-work", "_work", "a b", "a/b", "../work", "//work", "é", &long] {
        let text = listed(&format!("session:{name}"));
        assert!(text.contains(": `session` is "), "{text}");
        assert!(text.contains("first a letter or a digit, 100 at most"), "{text}");
    }
    for (query, expected) in [
        ("session=other", "has the key `session` in its query: write the name after `session:`"),
        ("workers=2", "`workers` has no meaning for the launcher \"session\", only for those that"),
        ("hosts=a", "`hosts` has no meaning for the launcher \"session\", only for those that"),
        ("nodes=2", "`nodes` has no meaning for the launcher \"session\", only for those that"),
        ("wrokers=2", "there is no key `wrokers`: did you mean `workers`?"),
    ] {
        let text = listed(&format!("session:work?{query}"));
        assert!(text.contains(expected), "{text}");
    }
}

#[test]
fn servers() {
    let tls = |host: &str, port| ServerAddress::Tls { host: host.into(), port };
    let of = |address: ServerAddress, name: &str, credentials: Option<&str>| {
        let credentials = credentials.map(str::to_owned);
        HostGroup::new(name, LauncherKind::Server { address, credentials }, vec![Host::named(name)])
    };
    let lab = from_url("gridrpc://lab.example.org").unwrap();
    assert_eq!(lab, of(tls("lab.example.org", 7711), "lab.example.org", None));
    assert!(!lab.trusted && lab.encryption && lab.compression == Compression::Auto);
    let other =
        from_url("GRIDRPC://lab:80/?credentials=/etc/keys%20of%20ann&trusted=true").unwrap();
    let expected = of(tls("lab", 80), "lab:80", Some("/etc/keys of ann"));
    assert_eq!(other, HostGroup { trusted: true, ..expected });
    let group = from_url("gridrpc://[fd00::7]:80?heartbeat=2&start_timeout=3").unwrap();
    let expected = HostGroup {
        heartbeat: Duration::from_secs(2),
        start_timeout: Duration::from_secs(3),
        ..of(tls("fd00::7", 80), "[fd00::7]:80", None)
    };
    assert_eq!(group, expected);
    assert_eq!(from_url("gridrpc://[fd00::7]").unwrap().name, "fd00::7");
    let local = from_url("gridrpc+unix:///run/gridrpc/a%3fb.sock").unwrap();
    let path = "/run/gridrpc/a?b.sock";
    assert_eq!(local, of(ServerAddress::Socket(path.into()), path, None));
    assert!(!local.trusted && !local.encryption && local.compression == Compression::Off);
    for (url, expected) in [
        ("gridrpc:lab", "is not the URL of a server: "),
        ("gridrpc://", "names no host: "),
        ("gridrpc://:80", "names no host: "),
        (
            "gridrpc://lab/linear/solve",
            "has \"/linear/solve\" behind the host, which means nothing",
        ),
        ("gridrpc://lab:0", "`server` is \"lab:0\": write HOST, HOST:PORT or [ADDRESS]:PORT"),
        ("gridrpc://ann@lab", "`server` is \"ann@lab\": write HOST, HOST:PORT or"),
        ("gridrpc://fd00::7:x", "`server` is \"fd00::7:x\": write HOST, HOST:PORT or"),
        ("gridrpc+unix:run/server.sock", "is not the URL of a server: "),
        ("gridrpc+unix://", "names no socket: write its absolute path"),
        ("gridrpc+unix://run/server.sock", "names no socket: write its absolute path"),
        ("gridrpc://lab?server=a", "has the key `server` in its query: write the server after"),
        ("gridrpc://lab?workers=2", "`workers` has no meaning for the launcher \"server\", only"),
        (
            "gridrpc://lab?encryption=none",
            "`encryption` has no meaning for the launcher \"server\"",
        ),
        (
            "ssh://lab?credentials=a",
            "`credentials` has no meaning for the launcher \"ssh\", only for",
        ),
    ] {
        let text = listed(url);
        assert!(text.contains(expected), "{text}");
    }
}

#[test]
fn hosts_of_several_nodes() {
    let group = from_url("slurm://lab?nodes=3&nodes_per_host=2&cores=8").unwrap();
    assert_eq!((group.hosts.len(), group.workers), (3, 1));
    assert_eq!((group.launcher.cores_of_worker(), group.launcher.nodes()), (16, Some((2, 8))));
    assert_eq!(read(&write(std::slice::from_ref(&group)), "").unwrap(), [group]);
    let of_one = from_url("slurm://lab?nodes_per_host=1&workers=4&cores=2").unwrap();
    assert_eq!((of_one.launcher.cores_of_worker(), of_one.launcher.nodes()), (2, None));
}

#[test]
fn hosts_that_come_and_go() {
    let of = |url| {
        let group = from_url(url).unwrap();
        (group.hosts.len(), group.min_hosts, group.idle.as_secs())
    };
    assert_eq!(of("slurm:?nodes=0-10&idle=5"), (10, Some(0), 5));
    assert_eq!(of("slurm:?nodes=3"), (3, None, 60));
    assert_eq!(of("program:a?hosts=n[1-4]&min_hosts=1"), (4, Some(1), 60));
    assert_eq!(of("local:?min_hosts=7"), (1, Some(1), 60));
    let text = "[defaults]\nlauncher = 'slurm'\nnodes = { min = 1, max = 4 }\n[server.a]\n[server.b]\nnodes = 2";
    let groups = read(text, "").unwrap();
    let nodes: Vec<_> = groups.iter().map(|one| (one.hosts.len(), one.min_hosts)).collect();
    assert_eq!(nodes, [(4, Some(1)), (2, None)]);
}
