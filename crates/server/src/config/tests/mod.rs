//! Whole files, and the messages for invalid ones.

mod any;
mod problems;
mod reference;
mod traces;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use time::Weekday;

use super::server_config::*;
use super::*;
use crate::limits::{Limit, Limits};

fn defaults() -> Defaults {
    Defaults {
        name: "here".into(),
        folder: PathBuf::from("/etc/gridrpc"),
        state: Some(PathBuf::from("/var/lib/gridrpc")),
        sockets: None,
        workers: 2,
        opentelemetry: BTreeMap::new(),
    }
}

fn config(text: &str) -> ServerConfig {
    read(text, "server.toml", &defaults()).unwrap_or_else(|problems| panic!("{problems}"))
}

const TLS: &str = "[tls]\ncertificate = 'a'\nkey = '/b'\nauthority = '../c'\n";

#[test]
fn an_empty_file_has_the_defaults() {
    let config = config("");
    assert_eq!(config.name, "here");
    assert_eq!(config.socket, Path::new("/var/lib/gridrpc/socket"));
    assert_eq!(config.network, None);
    assert_eq!(config.most_connections, 4096);
    assert_eq!(config.workers.count, 2);
    assert_eq!((config.workers.python.as_ref(), config.workers.hosts.len()), (None, 0));
    assert_eq!(config.workers.idle, Duration::from_secs(60));
    assert!(config.files.is_empty() && config.folders.is_empty());
    assert!(config.modules.is_empty() && config.python.is_empty());
    assert_eq!(config.everyone, Grants::default());
    let file = PathBuf::from("/var/lib/gridrpc/audit.jsonl");
    assert_eq!(config.audit, AuditConfig { file, size: 64 << 20, keep: 8 });
    assert_eq!(config.results.keep, Duration::from_secs(7 * 86_400));
    assert_eq!(config.results.bytes, 10 << 30);
}

#[test]
fn a_server_is_announced_at_its_name_and_port() {
    let directory =
        |text: &str| config(&format!("{TLS}[directory]\nurls = 'https://a:1/'\n{text}"));
    let directory = |text: &str| directory(text).directory.unwrap();
    let plain = directory("");
    assert_eq!(plain.urls, ["https://a:1/announce"]);
    assert_eq!((plain.host.as_str(), plain.port), ("here", None));
    let elsewhere = directory("address = '[::1]:99'\nspeed = 5");
    assert_eq!((elsewhere.host.as_str(), elsewhere.port), ("::1", Some(99)));
    assert_eq!((elsewhere.speed, directory("address = '::1'").port), (5.0, None));
    let wrong = "[directory]\naddress = '/run/socket'\nspeed = 0\ninterval = 0";
    let problems = read(wrong, "server.toml", &defaults()).unwrap_err().to_string();
    for part in [
        "`[directory]` needs a table [tls]",
        "no `urls`",
        "HOST:PORT",
        "above 0",
        "`interval` is 0",
    ] {
        assert!(problems.contains(part), "{part}: {problems}");
    }
}

#[test]
fn the_socket_is_where_other_users_reach_it_if_there_is_such_a_place() {
    let defaults = Defaults { sockets: Some("/run/gridrpc".into()), ..defaults() };
    let socket = |text| read(text, "server.toml", &defaults).unwrap().socket;
    assert_eq!(socket("server.name = 'lab'"), Path::new("/run/gridrpc/lab.sock"));
    assert_eq!(socket("server.name = 'a/b'"), Path::new("/var/lib/gridrpc/socket"));
    assert_eq!(socket("server.socket = '/s'"), Path::new("/s"));
}

#[test]
fn relative_paths_start_at_the_folder_of_the_file() {
    let config = config(&format!(
        "{TLS}revoked = 'r.pem'\n[server]\nstate = 's'\n[modules]\nfiles = 'm.so'\n\
         folders = ['d', '/e']\n[audit]\nfile = 'log/a'"
    ));
    let network = config.network.unwrap();
    let etc = Path::new("/etc/gridrpc");
    assert_eq!(network.tls.certificate, etc.join("a"));
    assert_eq!(network.tls.key, Path::new("/b"));
    assert_eq!(network.tls.authority, etc.join("../c"));
    assert_eq!(network.tls.revoked, Some(etc.join("r.pem")));
    assert_eq!(config.state, etc.join("s"));
    assert_eq!(config.socket, etc.join("s/socket"));
    assert_eq!(config.files, [etc.join("m.so")]);
    assert_eq!(config.folders, [etc.join("d"), PathBuf::from("/e")]);
    assert_eq!(config.audit.file, etc.join("log/a"));
}

#[test]
fn with_certificates_it_listens_in_the_network() {
    let network = config(TLS).network.unwrap();
    assert_eq!(network.addresses, ["127.0.0.1".parse::<IpAddr>().unwrap()]);
    assert_eq!(network.port, 7711);
    let more = "[server]\naddresses = ['0.0.0.0', '[::]', 'fd00::1']\nport = 0\n";
    let network = config(&format!("{more}{TLS}")).network.unwrap();
    let texts: Vec<String> = network.addresses.iter().map(IpAddr::to_string).collect();
    assert_eq!(texts, ["0.0.0.0", "::", "fd00::1"]);
    assert_eq!(network.port, 0);
}

#[test]
fn settings_of_calls() {
    let config = config(
        "[modules.fft]\nisolation = 'call'\nrun_as = 'caller'\npolicy = 'fifo'\nmost_running = 3\nmost_queued = 0\n\
         cores = 4\nmemory = '1.5 GiB'\ncpu_seconds = 0.5\nwall_seconds = 60\nopen_files = 100\n\
         processes = 7\nusers = ['ann', 'bob']\ngroups = 'staff'\n\
         calendar = [{ hours = '8-20', workers = 0 }]\n\
         [modules.blas]\ncores = 1\n[modules.lapack]\ncores = 'all'",
    );
    let fft = config.calls("fft").unwrap();
    let period = &fft.calendar[0];
    assert!(period.contains(Weekday::Sunday, 8 * 60) && period.workers == 0);
    assert_eq!(
        *fft,
        CallSettings {
            isolation: Isolation::Call,
            run_as: RunAs::Caller,
            policy: Policy::Fifo,
            most_running: Some(3),
            most_queued: Some(0),
            cores: Cores::Count(4),
            memory: Some(3 << 29),
            cpu_time: Some(Duration::from_millis(500)),
            wall_time: Some(Duration::from_secs(60)),
            open_files: Some(100),
            processes: Some(7),
            calendar: fft.calendar.clone(),
            users: Some(vec!["ann".into(), "bob".into()]),
            groups: Some(vec!["staff".into()]),
        }
    );
    assert_eq!(config.modules["blas"].cores, Cores::One);
    assert_eq!(config.modules["lapack"].cores, Cores::All);
    assert_eq!(config.calls("other"), None);
}

#[test]
fn workers_run_as_root_only_if_no_user_is_needed() {
    assert_eq!(config("[modules.fft]\nisolation = 'user'").worker_user(), None);
    assert_eq!(config("[workers]\nuser = 'gridrpc'").worker_user(), Some("gridrpc"));
    let as_callers = "[modules.fft]\nrun_as = 'caller'\n";
    assert_eq!(config(as_callers).worker_user(), Some("nobody"));
    let both = config(&format!("{as_callers}[workers]\nuser = 'gridrpc'"));
    assert_eq!(both.worker_user(), Some("gridrpc"));
}

#[test]
fn python_modules() {
    let config = config(
        "[workers]\npython = 'python3'\n[python.images]\nfunctions = ['a.b:f', 'c:g']\n\
         classes = 'a.b:K'\npath = 'lib'\nisolation = 'user'",
    );
    let images = &config.python["images"];
    let name = |module: &str, name: &str| PythonName { module: module.into(), name: name.into() };
    assert_eq!(images.functions, [name("a.b", "f"), name("c", "g")]);
    assert_eq!(images.classes, [name("a.b", "K")]);
    assert_eq!(images.path, [Path::new("/etc/gridrpc/lib")]);
    assert_eq!(config.calls("images").unwrap().isolation, Isolation::User);
}

#[test]
fn grants_of_users_and_groups() {
    let config = config(
        "[users.'ann@site']\nmodules = ['fft', 'blas']\ncode = true\nmonitor = true\nweight = 3\npriority = -7\n\
         calls = 5\nqueued = 0\nbytes = '2 GB'\nrate = 0.25\nworkers = 6\n\
         cpu_seconds_per_day = 0\nshared_bytes = '3 GB'\n\
         [groups.staff]\nmodules = ['fft', '*']\ncalls = 'unlimited'\nrate = 'unlimited'\n\
         bytes = 'unlimited'",
    );
    let ann = &config.users["ann@site"];
    let modules = Modules::Named(["fft".to_owned(), "blas".to_owned()].into());
    assert_eq!(
        *ann,
        Grants {
            modules: Some(modules),
            code: Some(true),
            monitor: Some(true),
            weight: Some(3),
            priority: Some(-7),
            calls: Some(Limit::At(5)),
            queued: Some(Limit::At(0)),
            bytes: Some(Limit::At(2_000_000_000)),
            rate: Some(0.25),
            workers: Some(Limit::At(6)),
            cpu_seconds: Some(Limit::At(0)),
            shared_bytes: Some(Limit::At(3_000_000_000)),
        }
    );
    let staff = Grants {
        modules: Some(Modules::All),
        calls: Some(Limit::Unlimited),
        bytes: Some(Limit::Unlimited),
        rate: Some(f64::INFINITY),
        ..Grants::default()
    };
    assert_eq!(config.groups["staff"], staff);
}

fn periods(calendar: &str) -> Vec<Period> {
    config(&format!("[modules.m]\ncalendar = {calendar}")).modules["m"].calendar.clone()
}

#[test]
fn hours_after_midnight_belong_to_the_day_before() {
    let night = &periods("[{ hours = '20:30-06', days = 'mon-fri', workers = 8 }]")[0];
    let at = |day, hour: u32, minute: u32| night.contains(day, hour * 60 + minute);
    assert!(!at(Weekday::Monday, 20, 29) && at(Weekday::Monday, 20, 30));
    assert!(at(Weekday::Tuesday, 5, 59) && !at(Weekday::Tuesday, 6, 0));
    assert!(!at(Weekday::Monday, 1, 0), "Sunday's night");
    assert!(at(Weekday::Saturday, 1, 0) && !at(Weekday::Saturday, 21, 0));
    assert!(!at(Weekday::Sunday, 1, 0));
}

#[test]
fn days_can_be_listed_and_go_around_the_week() {
    let days = |text: &str| {
        let period = &periods(&format!("[{{ hours = '00-24', days = '{text}', workers = 1 }}]"))[0];
        let week = std::iter::successors(Some(Weekday::Monday), |day| Some(day.next())).take(7);
        week.map(|day| if period.contains(day, 720) { '1' } else { '0' }).collect::<String>()
    };
    assert_eq!(days("sat,sun"), "0000011");
    assert_eq!(days("fri-mon"), "1000111");
    assert_eq!(days("tue, thu - fri"), "0101100");
}

#[test]
fn the_first_period_that_includes_the_time_counts() {
    let calendar = periods(
        "[{ hours = '20-06', workers = 8 }, { hours = '00-24', days = 'sun', workers = 4 }]",
    );
    assert_eq!(workers_at(&calendar, Weekday::Sunday, 60), Some(8));
    assert_eq!(workers_at(&calendar, Weekday::Sunday, 720), Some(4));
    assert_eq!(workers_at(&calendar, Weekday::Monday, 720), None);
}

#[test]
fn a_file_that_others_can_change_is_not_believed() {
    let file = std::env::temp_dir().join(format!("gridrpc-server-{}.toml", std::process::id()));
    std::fs::write(&file, "[server]\nname = 'lab'").unwrap();
    let read = |mode| {
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        read_file(&file).map(|config| config.name).map_err(|problems| problems.to_string())
    };
    assert_eq!(read(0o644), Ok("lab".into()));
    let problem = read(0o646).unwrap_err();
    let path = file.display();
    assert!(
        problem.starts_with(&format!("{path}: others can write to `{path}` (user ")),
        "{problem}"
    );
    assert!(problem.ends_with(": correct the owner and the permissions"), "{problem}");
    std::fs::remove_file(&file).unwrap();
}

#[test]
fn host_groups_come_from_another_file() {
    let folder = std::env::temp_dir().join(format!("gridrpc-server-hosts-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let grid = "[server.lab]\nhosts = ['n1', 'n2']\n[server.gpu]\nhosts = ['g1']\n";
    std::fs::write(folder.join("grid.toml"), grid).unwrap();
    let file = folder.join("server.toml");
    let names = |text: &str| {
        std::fs::write(&file, text).unwrap();
        let hosts = read_file(&file).unwrap().workers.hosts;
        hosts.into_iter().map(|group| group.name).collect::<Vec<_>>()
    };
    assert_eq!(names("[workers]\nconfig = 'grid.toml'"), ["lab", "gpu"]);
    assert_eq!(names("[workers]\nconfig = 'grid.toml'\nservers = ['gpu']"), ["gpu"]);
    assert_eq!(names("[workers]\nservers = ['ssh://n7']"), ["n7"]);
    assert!(names("[workers]\nconfig = 'grid.toml'\nservers = []").is_empty());
    std::fs::write(folder.join("grid.toml"), "[server.lab]\nhosts = []\nwrokers = 1").unwrap();
    std::fs::write(&file, "[workers]\nconfig = 'grid.toml'\ncount = -1").unwrap();
    let problems = read_file(&file).unwrap_err().to_string();
    let place = folder.display();
    let expected = format!(
        "{place}/server.toml:2: [workers]: the host groups cannot be used:\n  \
         {place}/grid.toml:2: server \"lab\": `hosts` is empty: name at least one host\n  \
         {place}/grid.toml:3: server \"lab\": there is no key `wrokers`: did you mean `workers`?\n\
         {place}/server.toml:3: [workers]: `count` is -1: write a whole number from 0 to 1000000"
    );
    assert_eq!(problems, expected);
    let writable = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    writable(&folder.join("grid.toml"), 0o666);
    let problems = read_file(&file).unwrap_err().to_string();
    let first = problems.lines().next().unwrap();
    let expected =
        format!("{place}/server.toml:2: [workers]: others can write to `{place}/grid.toml`");
    assert!(first.starts_with(&expected), "{problems}");
    std::fs::remove_dir_all(&folder).unwrap();
}
