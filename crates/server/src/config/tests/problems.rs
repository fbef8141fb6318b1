//! The message for every kind of problem in a file.

use super::*;

fn listed(text: &str) -> String {
    read(text, "server.toml", &defaults()).unwrap_err().to_string()
}

/// The message for a table with one more line.
fn of_table(table: &str, line: &str) -> String {
    let text = listed(&format!("[{table}]\n{line}"));
    let prefix = format!("server.toml:2: [{table}]: ");
    text.strip_prefix(&prefix).unwrap_or_else(|| panic!("{text}")).to_owned()
}

#[test]
fn all_is_reported_at_once() {
    let text = "\
[server]
name = ''
port = 70000
[sever]
[tls]
certificate = 'a'
kye = 'b'
[workers]
python = 3
[python.images]
functions = ['a:f', 'b:f', 'a']
[modules]
files = ['a', 'a', 7]
colour = 1
[modules.images]
[modules.\"../lapack\"]
[modules.fft]
policy = 'fiar'
[users]
everyone = true
[users.\"a b\"]
[groups.staff]
calls = 0
bytes = 100
audit = 1
";
    let expected = "\
server.toml:2: [server]: `name` is \"\": write a text, or leave the key out
server.toml:3: [server]: `port` is 70000: write a whole number from 0 to 65535
server.toml:4: there is no table [sever]: did you mean [server]?
server.toml:5: [tls]: there is no `key`: write it, as in key = \"server.key\"
server.toml:5: [tls]: there is no `authority`: write it, as in authority = \"authority.crt\"
server.toml:7: [tls]: there is no key `kye`: did you mean `key`?
server.toml:9: [workers]: `python` is 3: write a text in quotes
server.toml:10: [modules.images] and [python.images] have the same name: rename one of the two
server.toml:11: [python.images]: `functions` is \"a\": write a list such as [\"package.module:name\"]
server.toml:11: [python.images]: `functions` has \"f\" twice: take one of the two out
server.toml:13: [modules]: `files` has \"a\" twice: take one of the two out
server.toml:13: [modules]: `files` is 7: write a list of paths, such as [\"/opt/site/lapack.so\"]
server.toml:14: [modules]: there is no key `colour`: the keys are `files`, `folders`
server.toml:16: [modules]: `NAME` is \"../lapack\": write 1 to 255 letters, digits, `_` and `-`, first a letter or `_`
server.toml:18: [modules.fft]: `policy` is \"fiar\": write one of \"fifo\", \"fair\", \"priority\": is \"fair\" meant?
server.toml:20: [users]: `everyone` is true: write a table, as in [users.NAME]
server.toml:21: [users]: `NAME` is \"a b\": write 1 to 255 bytes without blanks and control characters
server.toml:23: [groups.staff]: `calls` is 0: write a whole number from 1 to 1000000, or \"unlimited\"
server.toml:24: [groups.staff]: `bytes` is 100: write a size as in \"64 MiB\" or \"2 GB\", or \"unlimited\"
server.toml:25: [groups.staff]: there is no key `audit`: the keys are `modules`, `code`, `monitor`, `weight`, `priority`, `calls`, `queued`, `bytes`, `rate`, `workers`, `cpu_seconds_per_day`, `shared_bytes`";
    let (listed, expected): (Vec<_>, Vec<_>) =
        (listed(text).lines().map(str::to_owned).collect(), expected.lines().collect());
    for line in &expected {
        assert!(
            listed.iter().any(|there| there == line),
            "{line}\nis not in\n{}",
            listed.join("\n")
        );
    }
    assert_eq!(listed.len(), expected.len(), "{}", listed.join("\n"));
}

#[test]
fn the_network_needs_certificates() {
    let expected =
        "needs a table [tls]: make certificates with `gridrpc ca` and name them there, or take";
    assert_eq!(of_table("server", "port = 1"), format!("`port` {expected} `port` out"));
    let text = of_table("server", "addresses = ['::1']");
    assert_eq!(text, format!("`addresses` {expected} `addresses` out"));
    // Only the certificate is missing.
    let text = listed("[server]\nport = 1\n[tls]\nkey = 'a'\nauthority = 'b'");
    assert_eq!(
        text,
        "server.toml:3: [tls]: there is no `certificate`: write it, as in certificate = \"server.crt\""
    );
}

#[test]
fn addresses_are_numbers() {
    let text =
        listed(&format!("[server]\naddresses = ['localhost', '1.2.3.4:80', '::', '::']\n{TLS}"));
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].contains("`addresses` is \"localhost\": write a list of addresses"), "{text}");
    assert!(lines[1].contains("`addresses` is \"1.2.3.4:80\""), "{text}");
    assert!(lines[2].ends_with("`addresses` has \"::\" twice: take one of the two out"), "{text}");
    assert_eq!(lines.len(), 3);
    let text = listed(&format!("[server]\naddresses = []\n{TLS}"));
    assert!(text.contains("`addresses` is empty: write a list of addresses"), "{text}");
}

#[test]
fn python_functions_need_an_interpreter() {
    assert_eq!(
        listed("[python.a]\nfunctions = 'm:f'"),
        "server.toml:1: there is no `python` in [workers]: name the interpreter, as in python = \
         \"/usr/bin/python3\""
    );
    let text = listed("[workers]\npython = 'p'\n[python.a]\nisolation = 'user'");
    assert_eq!(
        text,
        "server.toml:3: [python.a]: it offers nothing: write `functions` or `classes`"
    );
}

#[test]
fn names_of_python_functions() {
    for wrong in ["a", ":f", "a:", "a.:f", "a:b.c", "1a:f", "a b:f", "a:f:g", "../a:f"] {
        let text = listed(&format!("[workers]\npython = 'p'\n[python.a]\nfunctions = ['{wrong}']"));
        assert!(
            text.contains(&format!("`functions` is {wrong:?}: write a list such as")),
            "{text}"
        );
    }
    for [first, second] in [["functions", "classes"], ["classes", "functions"]] {
        let keys = format!("{first} = 'a:f'\n{second} = 'b:f'");
        let text = listed(&format!("[workers]\npython = 'p'\n[python.a]\n{keys}"));
        let expected = format!("`{second}` has \"f\" twice: take one of the two out");
        assert!(text.ends_with(&expected), "{text}");
    }
}

#[test]
fn a_state_folder_is_needed() {
    let defaults = Defaults { state: None, ..defaults() };
    let text = read("", "server.toml", &defaults).unwrap_err().to_string();
    assert_eq!(
        text,
        "server.toml:1: there is no home folder for the state: write state = \"/var/lib/gridrpc\" in \
         [server]"
    );
    assert!(read("server.state = 's'", "server.toml", &defaults).is_ok());
}

#[test]
fn without_workers_here_there_are_host_groups() {
    let text = listed("workers.count = 0");
    assert!(text.contains("`count` is 0, and there are no host groups"), "{text}");
    let text = listed("workers = { count = 0, servers = [] }");
    assert!(text.contains("`count` is 0, and there are no host groups"), "{text}");
    assert_eq!(config("workers = { count = 0, servers = 'ssh://node1' }").workers.count, 0);
}

#[test]
fn paths_of_sockets_are_short() {
    let path = format!("/{}", "x".repeat(106));
    assert_eq!(config(&format!("server.socket = '{path}'")).socket, Path::new(&path));
    let text = listed(&format!("server.socket = '{path}x'"));
    assert!(text.ends_with("which has more than 107 bytes: write a shorter `socket`"), "{text}");
}

#[test]
fn calendars() {
    let of = |calendar: &str| of_table("modules.m", &format!("calendar = {calendar}"));
    let list = "write a list such as [{ hours = \"20-06\", days = \"mon-fri\", workers = 8 }]";
    assert_eq!(of("1"), format!("`calendar` is 1: {list}"));
    assert_eq!(of("['20-06']"), format!("`calendar` is \"20-06\": {list}"));
    assert_eq!(of("[{ workers = 1 }]"), "there is no `hours`: write it, as in hours = \"20-06\"");
    assert_eq!(of("[{ hours = '1-2' }]"), "there is no `workers`: write it, as in workers = 8");
    for wrong in
        ["20", "20-20", "24-06", "20-25", "20:60-06", "-1-6", "20-06-07", "020-06", "", "a-b"]
    {
        let text = of(&format!("[{{ hours = '{wrong}', workers = 1 }}]"));
        let expected = "write two different times of the day, as in \"20-06\" or \"20:30-06:00\"";
        assert_eq!(text, format!("`hours` is {wrong:?}: {expected}"));
    }
    for wrong in ["", "monday", "mon-", "mon--tue", "mon,,tue"] {
        let text = of(&format!("[{{ hours = '1-2', days = '{wrong}', workers = 1 }}]"));
        assert_eq!(
            text,
            format!("`days` is {wrong:?}: write days as in \"mon-fri\" or \"sat,sun\"")
        );
    }
    let text = of("[{ hours = '1-2', workers = 1, day = 'mon' }]");
    assert_eq!(text, "there is no key `day`: did you mean `days`?");
}

#[test]
fn values_of_other_kinds() {
    let cases = [
        ("modules.m", "cores = 'two'", "\"one\", \"all\", or a whole number from 1 to 100000"),
        ("modules.m", "cores = 0", "\"one\", \"all\", or a whole number from 1 to 100000"),
        ("modules.m", "memory = 100", "a size as in \"64 MiB\" or \"2 GB\""),
        ("modules.m", "memory = '0 MB'", "a size as in \"64 MiB\" or \"2 GB\""),
        ("modules.m", "wall_seconds = 0", "seconds, a number from 0.1 to 3155760000"),
        ("modules.m", "open_files = 0", "a whole number from 1 to 1000000"),
        (
            "modules.m",
            "users = ['a b']",
            "a list of names without blanks, such as [\"ann\", \"bob\"]",
        ),
        (
            "everyone",
            "rate = 0",
            "calls per second, a number above 0 and up to 1000000000, or \"unlimited\"",
        ),
        (
            "everyone",
            "rate = nan",
            "calls per second, a number above 0 and up to 1000000000, or \"unlimited\"",
        ),
        ("everyone", "queued = 1.5", "a whole number from 0 to 1000000, or \"unlimited\""),
        ("everyone", "weight = 'unlimited'", "a whole number from 1 to 1000"),
        ("everyone", "code = 1", "true or false"),
        (
            "everyone",
            "modules = ['a/b']",
            "a list of modules, such as [\"lapack\"], or \"*\" for all",
        ),
        ("audit", "size = '4095 B'", "a size from \"4 KiB\" on"),
        ("audit", "keep = -1", "a whole number from 0 to 1000"),
        ("http", "most_connections = 1", "a whole number from 2 to 1000000"),
        ("http", "request_seconds = 0", "seconds, a number from 0.1 to 3155760000"),
        (
            "http",
            "allowed_origins = 'portal'",
            "a list of origins, such as [\"https://portal.example.org\"], or \"*\" for all",
        ),
        ("log", "format = 'xml'", "\"text\" or \"json\""),
        ("results", "keep_days = 0", "a whole number from 1 to 3650"),
        ("server", "most_connections = 0", "a whole number from 1 to 1000000"),
        ("workers", "idle = -1", "seconds, a number from 0 to 3155760000"),
    ];
    for (table, line, expected) in cases {
        let text = of_table(table, line);
        assert!(text.ends_with(&format!(": write {expected}")), "{line}: {text}");
    }
}

#[test]
fn http_without_certificates_stays_on_this_machine() {
    let line = "addresses = ['127.0.0.1', '::1', '10.0.0.1', '::']";
    let expected = ["10.0.0.1", "::"].map(|address| {
        format!(
            "server.toml:2: [http]: `addresses` has {address}, which other machines reach: add a table [tls], or \
             listen at 127.0.0.1"
        )
    });
    assert_eq!(listed(&format!("[http]\n{line}")), expected.join("\n"));
    let with_tls = config(&format!("{TLS}[http]\n{line}"));
    assert_eq!(with_tls.http.unwrap().addresses.len(), 4);
}

#[test]
fn tables_are_tables() {
    for (name, example) in [("tls", "[tls]"), ("users", "[users.NAME]"), ("results", "[results]")] {
        assert_eq!(
            listed(&format!("{name} = 1")),
            format!("server.toml:1: `{name}` is 1: write a table, as in {example}")
        );
    }
    let text = listed("[colour]");
    assert!(
        text.starts_with(
            "server.toml:1: there is no table [colour]: the tables are [server], [tls],"
        ),
        "{text}"
    );
}

#[test]
fn a_file_that_is_not_toml() {
    assert!(listed("[server]\nname = \n").starts_with("server.toml:2: is not valid TOML: "));
    assert_eq!(
        listed("[server]\n[server]"),
        "server.toml:2: `server` is there twice: take one of the two out, or give it another name"
    );
    let problems = read_file(Path::new("/usr")).unwrap_err().to_string();
    assert_eq!(problems, "/usr: cannot be read: it is not a regular file");
}
