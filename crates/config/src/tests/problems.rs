//! The message for every kind of problem in a file.

use super::*;

fn listed(text: &str) -> String {
    read(text, "grid.toml").unwrap_err().to_string()
}

/// The message for a group with these additional lines.
fn of_group(lines: &str) -> String {
    let text = listed(&format!("[server.fast]\nhosts = ['node1']\n{lines}"));
    let prefix = "grid.toml:3: server \"fast\": ";
    let parts: Vec<&str> =
        text.lines().map(|line| line.strip_prefix(prefix).expect(&text)).collect();
    parts.join("\n")
}

#[test]
fn all_is_reported_at_once() {
    let text = "\
[grid]
anything = 1
[defaults]
hosts = ['a']
output = 'plan'
[sever.slow]
[server.fast]
hosts = ['node1', 'gpu[8-1]',
         'node1']
wrokers = 4
heartbeat = 'often'
[server.far]
";
    let expected = "\
grid.toml:4: [defaults]: `hosts` cannot be in [defaults]: write the hosts of each server into its own table
grid.toml:5: [defaults]: `output` is \"plan\": write one of \"labelled\", \"plain\", \"kept\": is \"plain\" meant?
grid.toml:6: there is no table [sever]: did you mean [server.NAME]?
grid.toml:8: server \"fast\": `hosts` has \"gpu[8-1]\": a range ends before it begins: write the smaller number first
grid.toml:9: server \"fast\": `hosts` has \"node1\" twice: name it once; \"node1:8\" gives it 8 workers
grid.toml:10: server \"fast\": there is no key `wrokers`: did you mean `workers`?
grid.toml:11: server \"fast\": `heartbeat` is \"often\": write seconds, a number from 0.1 to 1000000000
grid.toml:12: server \"far\": there are no `hosts`: name them, as in hosts = [\"node1\", \"node2\"], or write launcher = \"local\" for workers on this machine";
    assert_eq!(listed(text), expected);
}

#[test]
fn numbers_of_nodes_that_cannot_be() {
    let expected = "a whole number from 1 to 100000, or the least and the most, as in \"0-10\" or { min = 0, max = 10 }";
    for wrong in ["'3-2'", "'-'", "'0-0'", "'a-2'", "{ min = 1 }", "{ min = 2, max = 1 }", "'4'"] {
        let text = listed(&format!("[server.lab]\nlauncher = 'slurm'\nnodes = {wrong}\n"));
        assert!(text.contains(expected), "{text}");
    }
}

#[test]
fn requests_to_batch_systems() {
    let text = "\
[server.lab]
launcher = 'slurm'
nodes = 0
memory = '16XB'
wall_time = '30'
cores = -1
exclusive = 'yes'
request = 'jobs'
options = ['--qos=a', 'qos']
partition = \"a\\nb\"
[server.far]
launcher = 'slurm'
hosts = 'n1'
command = 'sbatch'
[server.near]
hosts = 'n1'
partition = 'long'
nodes = 2
";
    let expected = "\
grid.toml:3: server \"lab\": `nodes` is 0: write a whole number from 1 to 100000
grid.toml:4: server \"lab\": `memory` is \"16XB\": write a size as in \"64 GB\" or \"16G\": a number with K, M, G or T, or of megabytes
grid.toml:5: server \"lab\": `wall_time` is \"30\": write a whole number of seconds, or a text as in \"08:00:00\" or \"2-12:00:00\"
grid.toml:6: server \"lab\": `cores` is -1: write a whole number from 1 to 100000
grid.toml:7: server \"lab\": `exclusive` is \"yes\": write true or false
grid.toml:8: server \"lab\": `request` is \"jobs\": write one of \"auto\", \"array\", \"job\", \"step\", \"direct\": is \"job\" meant?
grid.toml:9: server \"lab\": `options` is \"qos\": write options of one line, each with a dash in front
grid.toml:10: server \"lab\": `partition` is \"a\\nb\": write a text of one line
grid.toml:13: server \"far\": `hosts` has no meaning for the launcher \"slurm\", only for launchers with a list of hosts (here `nodes` says how many): take it out, or choose another `launcher`
grid.toml:14: server \"far\": `command` has no meaning for the launcher \"slurm\", only for \"ssh\" and \"program\": take it out, or choose another `launcher`
grid.toml:17: server \"near\": `partition` has no meaning for the launcher \"ssh\", only for \"slurm\": take it out, or choose another `launcher`
grid.toml:18: server \"near\": `nodes` has no meaning for the launcher \"ssh\", only for \"slurm\", \"gridengine\", \"htcondor\", \"pbs\", \"torque\", \"lsf\", \"flux\" and \"mpi\": take it out, or choose another `launcher`";
    assert_eq!(listed(text), expected);
}

#[test]
fn hosts_of_several_nodes_that_cannot_be() {
    let of_slurm = |keys: &str| {
        let all = listed(&format!("[server.lab]\nlauncher = 'slurm'\nnodes_per_host = 2\n{keys}"));
        all.split_once("\"lab\": ").unwrap().1.to_owned()
    };
    assert_eq!(
        of_slurm("workers = 4\n"),
        "`workers` is 4, and a host with `nodes_per_host` has one worker, which uses all of its nodes: write \
         workers = 1, and the processors of each node as `cores`"
    );
    assert_eq!(
        of_slurm("request = 'step'\n"),
        "`request` is \"step\", and a host with `nodes_per_host` has a job of its own: write request = \"array\", \
         or take it out"
    );
    let text = listed("[server.lab]\nlauncher = 'htcondor'\nnodes_per_host = 2\n");
    assert!(text.contains("only for \"slurm\", \"pbs\", \"torque\" and \"lsf\""), "{text}");
}

#[test]
fn modules_that_cannot_be() {
    let expected =
        "`preload` is 3: write a list of modules, such as [\"lapack\", \"/opt/site/fft.so\"]";
    assert_eq!(of_group("preload = 3"), expected);
    let listed = of_group("preload = ['fft', \"a\\nb\"]");
    assert_eq!(listed, "`preload` is \"a\\nb\": write a text of one line");
}

#[test]
fn what_is_no_toml() {
    let text = listed("[server.a]\nhosts = ['x'\nworkers = 1\n[server.b\n");
    assert_eq!(text.lines().count(), 2, "{text}");
    for line in text.lines() {
        assert!(line.contains(": is not valid TOML: "), "{text}");
    }
    assert!(listed("a = ").starts_with("grid.toml:1: is not valid TOML: "));
    let twice = "`fast` is there twice: take one of the two out, or give it another name";
    let text = listed("[server.fast]\nhosts = 'a'\n[server.fast]\nhosts = 'b'");
    assert_eq!(text, format!("grid.toml:3: {twice}"));
    let text = listed("[server.a]\n[server.a]\nx = 1\n[server.a]\n[server.b]\nx = 1\nx = 1");
    let lines: Vec<&str> = text.lines().map(|line| &line[..22]).collect();
    assert_eq!(
        lines,
        ["grid.toml:2: `a` is th", "grid.toml:4: `a` is th", "grid.toml:7: `x` is th"]
    );
    let text = listed("[server.a]\nworkers = 1\nworkers = 2");
    assert!(text.starts_with("grid.toml:3: `workers` is there twice"), "{text}");
}

#[test]
fn tables() {
    let text = listed("whatever = 1\nserver = 3");
    let expected = "\
grid.toml:1: there is no table [whatever]: a file has the tables [grid], [defaults] and [server.NAME]
grid.toml:2: `server` is 3: write a table, as in [server.NAME]";
    assert_eq!(text, expected);
    let text = listed("grid = 1\ndefaults = []\n[[server.a]]");
    let expected = "\
grid.toml:1: `grid` is 1: write a table, as in [grid]
grid.toml:2: `defaults` is a list: write a table, as in [defaults]
grid.toml:3: `server.a` is a list: write a table, as in [server.NAME]";
    assert_eq!(text, expected);
    assert!(listed("[server]\nhosts = ['a']").contains("`server.hosts` is a list: write a table"));
    let many: String = (0..1001).map(|n| format!("[server.s{n}]\nhosts = ['a']\n")).collect();
    let expected =
        "grid.toml:2001: there are more than 1000 servers: put hosts that are alike into one";
    assert_eq!(listed(&many), expected);
    let text = listed("[server.'a b']\nhosts = ['a']");
    let expected = "grid.toml:1: server \"a b\": the name is \"a b\": choose one of 1 to 255 bytes \
                    without blanks and control characters";
    assert_eq!(text, expected);
}

#[test]
fn values_that_keys_cannot_have() {
    let number = "write a whole number from 0 to 100000; 0 is one for each processor";
    let port = "write a port from 1 to 65535, or first and last, as in \"40000-40100\"";
    for (line, expected) in [
        ("workers = 'four'", format!("`workers` is \"four\": {number}")),
        ("workers = -1", format!("`workers` is -1: {number}")),
        ("workers = 2.0", format!("`workers` is 2.0: {number}")),
        ("workers = 0xfffffff", format!("`workers` is 0xfffffff: {number}")),
        ("workers = 99999999999999999999", format!("`workers` is 99999999999999999999: {number}")),
        ("ports = 0", format!("`ports` is 0: {port}")),
        ("ports = 70000", format!("`ports` is 70000: {port}")),
        ("ports = '2-1'", format!("`ports` is \"2-1\": {port}")),
        ("ports = '1-2-3'", format!("`ports` is \"1-2-3\": {port}")),
        ("ports = '+1-2'", format!("`ports` is \"+1-2\": {port}")),
        ("ports = [1, 2]", format!("`ports` is a list: {port}")),
        ("python = 3", "`python` is 3: write a text in quotes".into()),
        ("staging = ''", "`staging` is \"\": write a text, or leave the key out".into()),
        (r#"directory = "a\u0000b""#, "`directory` has a zero byte: take it out".into()),
        (
            "encryption = false",
            "`encryption` is false: write one of \"tls\", \"none\"".into(),
        ),
        (
            "launcher = 'shh'",
            "`launcher` is \"shh\": write one of \"local\", \"ssh\", \"program\", \"slurm\", \"gridengine\", \"htcondor\", \"pbs\", \"torque\", \"lsf\", \"flux\", \"mpi\", \"session\", \"server\": is \"ssh\" meant?"
                .into(),
        ),
        (
            "command = 'ssh \"a'",
            "`command` is \"ssh \\\"a\", in which a quote is not closed: close it, or write a list \
             of words"
                .into(),
        ),
        (
            "command = []",
            "`command` is empty: write the program's name and its arguments, or leave the key out"
                .into(),
        ),
        (
            "command = ['ssh', 1]",
            "`command` is a list: write a command: a text, or a list of texts".into(),
        ),
        (r#"command = ["a\u0000"]"#, "`command` has a zero byte: take it out".into()),
        (
            "addresses = ['10.0.0.1:22']",
            "`addresses` is \"10.0.0.1:22\": write a name or an address, without a port; those are \
             in `ports`"
                .into(),
        ),
        (
            "addresses = [1]",
            "`addresses` is 1: write a list of names and addresses, such as [\"10.0.0.1\"]".into(),
        ),
        (
            "memory = '20000000T'",
            "`memory` is \"20000000T\": write a size as in \"64 GB\" or \"16G\": a number with K, M, G \
             or T, or of megabytes"
                .into(),
        ),
        (
            "memory = -64",
            "`memory` is -64: write a size as in \"64 GB\" or \"16G\": a number with K, M, G or T, or \
             of megabytes"
                .into(),
        ),
        (
            "resources = ['gpu']",
            "`resources` is a list: write a table of whole numbers, as in { gpu = 2, \
             \"licence:matlab\" = 1 }"
                .into(),
        ),
        (
            "resources = { memory = 1, '' = 2, gpu = -1, a = 1.5, b = '2', c = 99999999999999999999 }",
            "`resources` has `memory`: write memory = \"64 GB\" instead\n\
             `resources` has the name \"\": write one of 1 to 255 bytes on one line\n\
             `resources.gpu` is -1: write a whole number from 0 on\n\
             `resources.a` is 1.5: write a whole number from 0 on\n\
             `resources.b` is \"2\": write a whole number from 0 on\n\
             `resources.c` is 99999999999999999999: write a whole number from 0 on"
                .into(),
        ),
        (
            "environment = 'A=1'",
            "`environment` is \"A=1\": write a table, as in { OMP_NUM_THREADS = \"1\" }".into(),
        ),
        (
            "environment = { 'A=' = 1, B = [], C = 2020-01-01 }",
            "`environment` has the name \"A=\": write one with at least a letter and without `=`\n\
             `environment.B` is a list: write a text, a number, true or false\n\
             `environment.C` is a date: write a text, a number, true or false"
                .into(),
        ),
    ] {
        assert_eq!(of_group(line), expected, "{line}");
    }
    for line in ["start_timeout = 0", "heartbeat = inf", "heartbeat = nan", "stop_timeout = -1"] {
        assert!(of_group(line).contains("write seconds, a number from 0"), "{line}");
    }
    let long = format!("staging = '{}'", "x".repeat(4097));
    assert_eq!(of_group(&long), "`staging` has more than 4096 bytes: write less");
    let long = format!("environment.A = '{}'", "x".repeat(128 << 10));
    assert_eq!(of_group(&long), "`environment` has more than 131072 bytes: write less");
    let long = format!("command = 'a {}'", "x".repeat(128 << 10));
    assert_eq!(of_group(&long), "`command` has more than 131072 bytes: write less");
}

#[test]
fn long_values_are_cut() {
    let text = of_group(&format!("output = '{}'", "é".repeat(1000)));
    assert!(text.contains(&format!("is \"{}\"...: write", "é".repeat(60))), "{text}");
}

#[test]
fn unknown_keys_have_the_list_of_those_there_are() {
    let text = of_group("colour = 1");
    assert!(
        text.starts_with("there is no key `colour`: the keys of a server are launcher, hosts,")
    );
}

#[test]
fn hosts() {
    let expected = "grid.toml:1: server \"a\": `hosts` is empty: name at least one host";
    assert_eq!(listed("server.a = { launcher = 'local', hosts = [] }"), expected);
    let text = listed("server.a.hosts = 7");
    assert!(
        text.ends_with("`hosts` is 7: write a list of hosts, such as [\"node1\", \"gpu[01-08]\"]")
    );
    let text = listed("server.a.hosts = ['a', 7]");
    assert!(text.contains("`hosts` is 7: write"), "{text}");
    let slip =
        "there are more than 100000 hosts up to here: look for a slip in the ranges of `hosts`";
    let text = listed("[server.a]\nhosts = ['a[1-60000]']\n[server.b]\nhosts = ['a[1-60000]']");
    assert_eq!(text, format!("grid.toml:4: server \"b\": {slip}"));
    let text = listed("server.a.hosts = ['a[0-999999999999999999]b[0-999999999999999999]']");
    assert!(text.ends_with(slip), "{text}");
}

#[test]
fn keys_of_other_launchers() {
    let expected = "`prefix` has no meaning for the launcher \"ssh\", only for \"local\", \"slurm\", \
                    \"gridengine\", \"htcondor\", \"pbs\", \"torque\", \"lsf\" and \"flux\": take it out, or choose another `launcher`";
    assert_eq!(of_group("prefix = 'ip'"), expected);
    let text = listed("[defaults]\nprefix = 'ip'");
    assert_eq!(text, format!("grid.toml:2: [defaults]: {expected}"));
    let text = listed("[server.a]\nlauncher = 'local'\ncommand = 'ssh'");
    let expected = "grid.toml:3: server \"a\": `command` has no meaning for the launcher \"local\", only \
                    for \"ssh\" and \"program\": take it out, or choose another `launcher`";
    assert_eq!(text, expected);
    let text = listed("[server.a]\nlauncher = 'program'\nhosts = ['x']");
    let expected = "grid.toml:1: server \"a\": the launcher is \"program\", and no `command` says which: \
                    write the command that runs it";
    assert_eq!(text, expected);
    // The launcher is unknown.
    assert_eq!(
        listed("server.a = { launcher = 'x', prefix = 'ip', hosts = 'a' }").lines().count(),
        1
    );
    assert_eq!(listed("defaults.launcher = 'x'\nserver.a.prefix = 'ip'").lines().count(), 1);
}

#[test]
fn keys_that_sessions_do_not_take() {
    let taken = ["launcher", "session", "memory", "resources", "heartbeat", "output"];
    let values =
        ["'a'", "1", "true", "['a']", "{ a = 1 }", "'1 GB'", "'--a'", "['--a']", "'job'", "'none'"];
    for key in schema::names().filter(|key| !taken.contains(key)) {
        let fits = match key {
            "server" | "credentials" => "\"server\"",
            _ => "those that start agents",
        };
        let refusal = format!(
            "grid.toml:4: server \"a\": `{key}` has no meaning for the launcher \"session\", only for \
             {fits}: take it out, or choose another `launcher`"
        );
        let refused = values.iter().any(|value| {
            let text = format!("[server.a]\nlauncher = 'session'\nsession = 'b'\n{key} = {value}");
            read(&text, "grid.toml").expect_err(key).to_string() == refusal
        });
        assert!(refused, "{key}");
    }
    let text = listed("[server.a]\nlauncher = 'session'");
    let expected = "grid.toml:1: server \"a\": the launcher is \"session\", and no `session` says which: \
                    write its name";
    assert_eq!(text, expected);
    let expected = "`session` has no meaning for the launcher \"ssh\", only for \"session\": take it out, \
                    or choose another `launcher`";
    assert_eq!(of_group("session = 'a'"), expected);
    let expected = "`session` is \"-a\": write the name of a session: letters, digits, `.`, `_` and `-`, \
                    first a letter or a digit, 100 at most";
    assert_eq!(of_group("session = '-a'").lines().next(), Some(expected));
    assert_eq!(
        listed("[server.a]\nlauncher = 'session'\nsession = '-a'"),
        format!("grid.toml:3: server \"a\": {expected}")
    );
    assert!(
        listed("[defaults]\nlauncher = 'session'\nworkers = 2")
            .starts_with("grid.toml:3: [defaults]: `workers` has no meaning")
    );
}

#[test]
fn servers_without_an_address_and_with_keys_of_others() {
    let expected = "grid.toml:1: server \"a\": the launcher is \"server\", and no `server` says which: \
                    write its address, as in server = \"lab.example.org\"";
    assert_eq!(listed("[server.a]\nlauncher = 'server'"), expected);
    let expected = "`server` is \"lab:99999\": write HOST, HOST:PORT or [ADDRESS]:PORT (without a port it \
                    is 7711), or the absolute path of a Unix socket";
    assert_eq!(
        listed("[server.a]\nlauncher = 'server'\nserver = 'lab:99999'"),
        format!("grid.toml:3: server \"a\": {expected}")
    );
    for (key, fits) in [("server", "\"server\""), ("credentials", "\"server\"")] {
        let expected = format!(
            "`{key}` has no meaning for the launcher \"ssh\", only for {fits}: take it out, or choose \
             another `launcher`"
        );
        assert_eq!(of_group(&format!("{key} = 'a'")), expected);
    }
    for line in ["session = 'b'", "workers = 2", "preload = ['numpy']", "nodes = 2", "hosts = 'a'"]
    {
        let text = listed(&format!("[server.a]\nlauncher = 'server'\nserver = 'b'\n{line}"));
        assert!(text.contains("has no meaning for the launcher \"server\""), "{text}");
        assert_eq!(text.lines().count(), 1, "{text}");
    }
}

#[test]
fn a_hundred_problems_are_reported() {
    let text = listed(&"[server.a]\n".repeat(103));
    assert_eq!(text.lines().count(), 101);
    assert!(text.ends_with("\nand 2 more problems"), "{text}");
}

#[test]
fn a_text_that_is_too_long() {
    let text = listed(&"#".repeat((1 << 20) + 1));
    assert_eq!(text, "grid.toml: has more than 1 MiB: check that it is the configuration file");
}
