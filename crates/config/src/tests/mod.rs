//! Whole files and URLs, and the messages for invalid ones.

mod any;
mod problems;
mod reference;
mod urls;

use std::time::Duration;

use gridrpc_wire::Compression;

use super::*;

const WHOLE: &str = r#"
[grid]
workers = 3

[defaults]
heartbeat = 2.5
environment = { A = "1", B = "2" }
preload = ["blas"]
addresses = ["10.0.0.1"]
resources = { gpu = 1, disk = 5 }

[server.zebra]
launcher = "ssh"
hosts = ["node1", "ann@node2:4", "gpu[01-03]"]
workers = 4
command = "ssh -F 'my config'"
python = "/opt/py/bin/python3"
program = "/opt/bin/gridrpc"
directory = "/scratch/me"
environment = { OMP_NUM_THREADS = "1", LIMIT = 3, B = true }
preload = ["lapack", "/opt/fft.so"]
memory = "64 GB"
resources = { gpu = 2, "licence:matlab" = 1 }
addresses = ["10.0.0.1", "[fd00::1]", "head.example.org"]
ports = "40000-40100"
start_timeout = 61
stop_timeout = 0
heartbeat = 6
staging = "/tmp/cache"
output = "kept"
encryption = "none"
compression = "zstd"
trusted = false

[server.here]
launcher = "local"
prefix = ["ip"]
"#;

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(ToString::to_string).collect()
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
}

fn numbers(pairs: &[(&str, u64)]) -> Vec<(String, u64)> {
    pairs.iter().map(|(name, number)| (name.to_string(), *number)).collect()
}

#[test]
fn what_hosts_have_is_said_or_what_they_tell() {
    let offers = |keys: &str, worker_memory| {
        let text = format!("[server.a]\nlauncher = {keys}\nresources = {{ gpu = 2 }}");
        read(&text, "").unwrap()[0].offers(worker_memory).to_string()
    };
    assert_eq!(offers("'local'", None), "2 of \"gpu\"");
    assert_eq!(offers("'local'", Some(5000)), "2 of \"gpu\" and 5 KB of memory");
    let said = "2 of \"gpu\" and 64 GB of memory";
    assert_eq!(offers("'local'\nmemory = '64 GB'", Some(5000)), said);
    // Batch systems count in units of 1,024 and know no others.
    let parsed = read("server.a = { launcher = 'slurm', memory = '2 GB' }", "").unwrap();
    let LauncherKind::Batch(batch) = &parsed[0].launcher else { panic!("{parsed:?}") };
    assert_eq!(batch.memory.as_deref(), Some("1908M"));
    let parsed = offers("'slurm'\nmemory = '1500'", Some(5000));
    assert_eq!(parsed, "2 of \"gpu\" and 1.572 GB of memory");
}

#[test]
fn every_key_has_its_effect() {
    let groups = read(WHOLE, "grid.toml").unwrap();
    let [zebra, here] = &groups[..] else { panic!("{groups:?}") };
    let with = |name: &str, workers| Host { name: name.into(), workers };
    let expected = HostGroup {
        workers: 4,
        python: Some("/opt/py/bin/python3".into()),
        program: Some("/opt/bin/gridrpc".into()),
        directory: Some("/scratch/me".into()),
        environment: pairs(&[("A", "1"), ("OMP_NUM_THREADS", "1"), ("LIMIT", "3"), ("B", "true")]),
        preload: texts(&["lapack", "/opt/fft.so"]),
        memory: Some(64_000_000_000),
        resources: numbers(&[("disk", 5), ("gpu", 2), ("licence:matlab", 1)]),
        addresses: texts(&["10.0.0.1", "fd00::1", "head.example.org"]),
        ports: Some((40_000, 40_100)),
        start_timeout: Duration::from_secs(61),
        stop_timeout: Duration::ZERO,
        staging: Some("/tmp/cache".into()),
        output: WorkerOutput::Kept,
        encryption: false,
        compression: Compression::On,
        trusted: false,
        ..HostGroup::new(
            "zebra",
            LauncherKind::Ssh { command: texts(&["ssh", "-F", "my config"]) },
            vec![
                with("node1", None),
                with("ann@node2", Some(4)),
                with("gpu01", None),
                with("gpu02", None),
                with("gpu03", None),
            ],
        )
    };
    assert_eq!(*zebra, expected);
    let expected = HostGroup {
        heartbeat: Duration::from_millis(2500),
        environment: pairs(&[("A", "1"), ("B", "2")]),
        preload: texts(&["blas"]),
        resources: numbers(&[("gpu", 1), ("disk", 5)]),
        addresses: texts(&["10.0.0.1"]),
        ..HostGroup::new(
            "here",
            LauncherKind::Local { prefix: texts(&["ip"]) },
            vec![Host::named("localhost")],
        )
    };
    assert_eq!(*here, expected);
}

#[test]
fn what_is_not_said_is_built_in() {
    let groups = read("server.s.hosts = 'node1'", "").unwrap();
    let ssh = LauncherKind::Ssh { command: texts(&["ssh"]) };
    let expected = HostGroup::new("s", ssh, vec![Host::named("node1")]);
    assert_eq!(groups, std::slice::from_ref(&expected));
    assert_eq!(expected.start_timeout, Duration::from_secs(60));
    assert_eq!(expected.stop_timeout, Duration::from_secs(5));
    assert_eq!(expected.heartbeat, Duration::from_secs(6));
    assert_eq!((expected.encryption, expected.workers), (true, 0));
}

#[test]
fn a_file_need_not_have_groups() {
    for text in ["", "\u{feff}[grid]\nworkers = 2\n", "[server]", "[defaults]\r\nworkers = 0"] {
        assert_eq!(read(text, "").unwrap(), [], "{text:?}");
    }
}

#[test]
fn a_default_command_is_one_of_its_launcher() {
    let text = "
        [defaults]
        launcher = 'program'
        command = ['start', 'a b']
        [server.a]
        hosts = ['x']
        [server.b]
        launcher = 'ssh'
        hosts = ['x']
        [server.c]
        launcher = 'local'";
    let launchers: Vec<_> =
        read(text, "").unwrap().into_iter().map(|group| group.launcher).collect();
    let expected = [
        LauncherKind::Program { command: texts(&["start", "a b"]) },
        LauncherKind::Ssh { command: texts(&["ssh"]) },
        LauncherKind::Local { prefix: Vec::new() },
    ];
    assert_eq!(launchers, expected);
}

#[test]
fn sessions_use_the_defaults_that_they_take() {
    let text = "
        [defaults]
        python = '/opt/python'
        workers = 4
        min_hosts = 0
        compression = 'zstd'
        encryption = 'tls'
        trusted = false
        environment = { A = '1' }
        resources = { gpu = 1, disk = 5 }
        memory = '4 GB'
        heartbeat = 3
        [server.near]
        launcher = 'session'
        session = 'work'
        resources = { gpu = 2 }";
    let groups = read(text, "").unwrap();
    let expected = HostGroup {
        memory: Some(4_000_000_000),
        resources: numbers(&[("disk", 5), ("gpu", 2)]),
        heartbeat: Duration::from_secs(3),
        ..HostGroup::new(
            "near",
            LauncherKind::Session { name: "work".into() },
            vec![Host::named("work")],
        )
    };
    assert_eq!(groups, [expected]);
    let expected = r#"[server.near]
launcher = "session"
session = "work"
memory = "4000000000 B"
resources = { disk = 5, gpu = 2 }
heartbeat = 3
output = "labelled"
"#;
    assert_eq!(write(&groups), expected);
    assert_eq!(read(expected, "").unwrap(), groups);
    let inherited = "[defaults]\nlauncher = 'session'\nsession = 'work'\n[server.a]";
    let groups = read(inherited, "").unwrap();
    assert_eq!(groups[0].launcher, LauncherKind::Session { name: "work".into() });
}

#[test]
fn servers_use_the_defaults_that_they_take() {
    let text = "
        [defaults]
        python = '/opt/python'
        workers = 4
        compression = 'zstd'
        encryption = 'none'
        trusted = true
        start_timeout = 7
        heartbeat = 3
        [server.lab]
        launcher = 'server'
        server = 'lab.example.org:80'
        credentials = '/home/ann/lab'";
    let groups = read(text, "").unwrap();
    let address = ServerAddress::Tls { host: "lab.example.org".into(), port: 80 };
    let launcher = LauncherKind::Server { address, credentials: Some("/home/ann/lab".into()) };
    let expected = HostGroup {
        compression: Compression::On,
        start_timeout: Duration::from_secs(7),
        heartbeat: Duration::from_secs(3),
        ..HostGroup::new("lab", launcher, vec![Host::named("lab.example.org:80")])
    };
    assert!(!expected.trusted);
    assert_eq!(groups, [expected]);
    let expected = r#"[server.lab]
launcher = "server"
server = "lab.example.org:80"
credentials = "/home/ann/lab"
start_timeout = 7
heartbeat = 3
output = "labelled"
compression = "zstd"
"#;
    assert_eq!(write(&groups), expected);
    assert_eq!(read(expected, "").unwrap(), groups);
    let inherited = "
        [defaults]
        launcher = 'server'
        server = '/run/server.sock'
        trusted = true
        [server.a]
        [server.b]
        trusted = false";
    let groups = read(inherited, "").unwrap();
    let address = ServerAddress::Socket("/run/server.sock".into());
    assert_eq!(groups[0].launcher, LauncherKind::Server { address, credentials: None });
    assert_eq!(groups.iter().map(|group| group.trusted).collect::<Vec<_>>(), [true, false]);
    assert_eq!(read(&write(&groups), "").unwrap(), groups);
}

#[test]
fn a_session_listens_in_the_folder_of_state() {
    // This process may have either variable: both lead to the same end.
    let path = session_socket("work").expect("a home folder");
    assert!(path.ends_with("gridrpc/sessions/work/socket"), "{}", path.display());
}

#[test]
fn groups_that_are_written_are_read_again() {
    let groups = read(WHOLE, "").unwrap();
    assert_eq!(read(&write(&groups), "").unwrap(), groups);
    let text = write(&[from_url("ssh://ann@[fd00::7]:23?output=plain&workers=2").unwrap()]);
    let expected = r#"[server."fd00::7"]
launcher = "ssh"
command = ["ssh", "-p", "23"]
hosts = ["ann@fd00::7"]
workers = 2
start_timeout = 60
stop_timeout = 5
heartbeat = 6
output = "plain"
encryption = "tls"
compression = "auto"
"#;
    assert_eq!(text, expected);
}

#[test]
fn files_are_read() {
    let folder = std::env::temp_dir().join(format!("gridrpc-servers-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("grid.toml");
    let reads = |content: &[u8]| {
        std::fs::write(&file, content).unwrap();
        read_file(&file)
            .map_err(|problems| problems.to_string().replace(&file.display().to_string(), "FILE"))
    };
    assert_eq!(
        reads("\u{feff}[server.a]\nhosts = ['é1']".as_bytes()).unwrap()[0].hosts[0].name,
        "é1"
    );
    let expected = "FILE:2: the line is not UTF-8: save the file as UTF-8";
    assert_eq!(reads(b"# \n# \xff\n").unwrap_err(), expected);
    let expected = "FILE: has more than 1 MiB: check that it is the configuration file";
    assert_eq!(reads(&vec![b'#'; (1 << 20) + 1]).unwrap_err(), expected);
    assert_eq!(reads(&b"\xc3\xa4".repeat(1 << 20)).unwrap_err(), expected);
    assert_eq!(reads(&[b"#", &b"\xc3\xa4".repeat(1 << 19)[..]].concat()).unwrap_err(), expected);
    std::fs::remove_dir_all(&folder).unwrap();
    let missing = read_file(&file).unwrap_err().to_string();
    assert!(missing.contains("grid.toml: cannot be read: No such file"), "{missing}");
    let device = read_file(std::path::Path::new("/dev/zero")).unwrap_err().to_string();
    assert_eq!(device, "/dev/zero: cannot be read: it is not a regular file");
}
