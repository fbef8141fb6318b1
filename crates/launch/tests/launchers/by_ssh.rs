//! The ssh launcher with a stand-in for ssh that runs the command on this machine, in the login shell that
//! the host is named after. by_real_ssh.rs uses real ones.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use gridrpc_config::{HostGroup, LauncherKind};
use gridrpc_launch::Event;

use crate::support::{AGENT, Launching, folder, group, script, start};

/// Runs the command in a login shell; LOGIN is what its startup files do first.
const SSH: &str = r#"while [ $# -gt 2 ]; do
    [ "$1" = -R ] && echo "Allocated port 4321 for remote forward to ${2#0:}" >&2
    shift
done
export SSH_CONNECTION="10.9.9.9 1 10.9.9.8 22"
eval "$LOGIN"
exec "$1" -c "$2""#;

struct Host {
    folder: PathBuf,
    group: HostGroup,
    program: PathBuf,
}

impl Host {
    /// With these environment variables.
    fn new(agent: &str, variables: &[&str]) -> Host {
        let folder = folder();
        let ssh = script(&folder, "ssh", SSH);
        let program = script(&folder, "gridrpc", agent);
        let mut command = vec!["env".to_owned()];
        command.extend(variables.iter().map(ToString::to_string));
        command.push(ssh.display().to_string());
        let mut group = group(LauncherKind::Ssh { command });
        group.staging = Some(folder.join("cache").display().to_string());
        Host { folder, group, program }
    }

    fn open(&self) -> Launching {
        Launching::open(&self.group, &self.program)
    }

    /// Why no agent starts on the host.
    fn failure(&self) -> String {
        let mut ssh = self.open();
        ssh.launcher.start(vec![start(1, "sh")]);
        ssh.failure()
    }

    fn staged(&self) -> Vec<PathBuf> {
        let all = |folder: &Path| -> Vec<PathBuf> {
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
        };
        all(&self.folder.join("cache")).iter().flat_map(|folder| all(folder)).collect()
    }
}

fn is_there(shell: &str) -> bool {
    Command::new(shell).args(["-c", "true"]).status().is_ok()
}

#[test]
fn agents_are_staged_and_started_whatever_the_login_shell_is() {
    for shell in ["sh", "bash", "dash", "csh", "tcsh", "fish", "zsh"] {
        if !is_there(shell) {
            eprintln!("{shell} is not on this machine");
            continue;
        }
        let host = Host::new(AGENT, &["LOGIN=printf 'welcome\\ngridrpc: what? '; echo motd >&2"]);
        let mut ssh = host.open();
        ssh.launcher.start(vec![start(1, shell)]);
        let (agent, ticket) = ssh.ticket();
        assert_eq!(agent, 1, "{shell}");
        assert_eq!(ticket.addresses, ["10.9.9.9:4567", "10.1.2.3:4567", "127.0.0.1:4321"]);
        assert_eq!(ticket.secret, start(1, "").ticket.secret);
        assert_eq!(host.staged().len(), 1);
        ssh.launcher.stop(1);
        assert_eq!(ssh.said().1, "leaves\n", "{shell}");
        assert_eq!(ssh.end(), (1, Event::Ended("exit status: 0".into())));
    }
}

#[test]
fn a_program_is_copied_once() {
    let host = Host::new(AGENT, &[]);
    let copies = |ssh: &mut Launching| {
        ssh.launcher.start(vec![start(1, "sh")]);
        let mut copies = 0;
        loop {
            match ssh.next().1 {
                Event::State(state) => copies += usize::from(state == "copies the program"),
                Event::Said(_) => return copies,
                other => panic!("{other:?}"),
            }
        }
    };
    assert_eq!(copies(&mut host.open()), 1);
    let made = fs::metadata(&host.staged()[0]).unwrap();
    assert_eq!(made.permissions().mode() & 0o777, 0o700);
    assert_eq!(copies(&mut host.open()), 0);
}

#[test]
fn many_hosts_that_share_a_folder_stage_at_once() {
    // Long enough for many writes.
    let agent = format!("{AGENT}\nexit\n{}", "# filler\n".repeat(200_000));
    let host = Host::new(&agent, &[]);
    let mut ssh = host.open();
    ssh.launcher.start(
        (0..40)
            .map(|agent| {
                let mut one = start(agent, "sh");
                one.ticket.secret[0] = agent as u8;
                one
            })
            .collect(),
    );
    for _ in 0..40 {
        let (agent, ticket) = ssh.ticket();
        assert_eq!(u32::from(ticket.secret[0]), agent);
    }
    assert_eq!(host.staged().len(), 1, "what did not get its place is left: {:?}", host.staged());
}

#[test]
fn a_program_that_is_there_is_not_copied() {
    let mut host = Host::new("exit 1", &[]);
    let there = script(&host.folder, "it's there", AGENT);
    host.group.program = Some(there.display().to_string());
    host.group.addresses = vec!["10.1.2.3".into()];
    let mut ssh = host.open();
    ssh.launcher.start(vec![start(1, "sh")]);
    let addresses = ssh.ticket().1.addresses;
    assert_eq!(addresses, ["10.1.2.3:4567", "127.0.0.1:4321"], "where to dial is named");
    assert!(!host.folder.join("cache").exists());
    host.group.program = Some("/nowhere/gridrpc".into());
    let why = host.failure();
    assert!(why.starts_with("on sh the program cannot be run: /nowhere/gridrpc: "), "{why}");
}

#[test]
fn another_kind_of_machine_is_reported() {
    let host = Host::new(AGENT, &[]);
    let bin = host.folder.join("bin");
    fs::create_dir(&bin).unwrap();
    script(&bin, "uname", "echo Linux riscv64");
    let path = format!("PATH={}:/usr/bin:/bin", bin.display());
    let other = Host::new(AGENT, &[&path]);
    let why = other.failure();
    assert!(why.starts_with("sh is a machine of another kind (Linux riscv64) than this"), "{why}");
    assert!(other.staged().is_empty());
}

#[test]
fn a_folder_that_cannot_be_made_is_reported() {
    let mut host = Host::new(AGENT, &[]);
    host.group.staging = Some("/proc/gridrpc".into());
    let why = host.failure();
    assert!(why.contains("cannot be kept in `/proc/gridrpc`: mkdir: "), "{why}");
}

#[test]
fn a_folder_that_others_can_change_is_refused() {
    let host = Host::new(AGENT, &[]);
    let mut ssh = host.open();
    ssh.launcher.start(vec![start(1, "sh")]);
    ssh.ticket();
    let (program, cache) = (host.staged().remove(0), host.folder.join("cache"));
    let folder = program.parent().unwrap();
    let set = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode));
    let refused = |path: &Path, what: &str| {
        let why = host.failure();
        let why = why.strip_prefix("on sh the program is not run from ").unwrap_or(&why);
        assert!(why.contains(&format!("`{}`", path.display())) && why.contains(what), "{why}");
        assert!(why.contains("`staging` in grid.toml"), "{why}");
    };
    for path in [&host.folder, &cache, folder, &program] {
        set(path, 0o777).unwrap();
        refused(path, "mode 0777");
        set(path, 0o700).unwrap();
    }
    set(&cache, 0o1777).unwrap();
    let mut ssh = host.open();
    ssh.launcher.start(vec![start(1, "sh")]);
    ssh.ticket();
    if fs::metadata("/proc/self").unwrap().uid() == 0 {
        for path in [folder, &program] {
            chown(path, Some(4711), None).unwrap();
            refused(path, "belongs to user 4711 (mode 0700)");
            chown(path, Some(0), None).unwrap();
        }
    }
}

#[test]
fn a_program_that_is_not_whole_is_copied_again() {
    let host = Host::new(AGENT, &[]);
    for _ in 0..2 {
        let mut ssh = host.open();
        ssh.launcher.start(vec![start(1, "sh")]);
        ssh.ticket();
        ssh.launcher.close();
        let program = host.staged().remove(0);
        assert_eq!(fs::read(&program).unwrap(), fs::read(&host.program).unwrap());
        fs::write(program, "exit 0").unwrap();
    }
}

#[test]
fn without_a_home_there_is_no_place() {
    let mut host = Host::new(AGENT, &["-u", "XDG_CACHE_HOME", "HOME=/nowhere/home"]);
    host.group.staging = None;
    let why = host.failure();
    assert!(why.contains("there is no home folder (`/nowhere/home` is not there)"), "{why}");
}

#[test]
fn home_is_where_a_tilde_or_nothing_leads_to() {
    let home = folder();
    let variable = format!("HOME={}", home.display());
    for (staging, expected) in [(None, ".cache/gridrpc"), (Some("~/my cache"), "my cache")] {
        let mut host = Host::new(AGENT, &["-u", "XDG_CACHE_HOME", &variable]);
        host.group.staging = staging.map(Into::into);
        let mut ssh = host.open();
        ssh.launcher.start(vec![start(1, "sh")]);
        ssh.ticket();
        assert!(home.join(expected).is_dir(), "{expected}");
    }
}

#[test]
fn a_program_that_does_not_run_there_is_reported_and_does_not_stay() {
    let host = Host::new("echo 'version GLIBC_9 not found' >&2; exit 1", &[]);
    let why = host.failure();
    assert!(
        why.contains("this machine's program cannot be run: version GLIBC_9 not found"),
        "{why}"
    );
    assert!(host.staged().is_empty());
}

#[test]
fn what_ends_before_the_script_is_reported() {
    let host = Host::new(AGENT, &["LOGIN=echo 'This account is not available.' >&2; exit 1"]);
    let why = host.failure();
    assert!(why.contains("(exit status: 1) before there was an agent: This account"), "{why}");
    let refused =
        Host::new(AGENT, &["LOGIN=echo 'x@sh: Permission denied (publickey).' >&2; exit 255"]);
    assert!(refused.failure().starts_with("sh does not let this user in without a password"));
}

#[test]
fn stopped_while_it_connects_it_ends() {
    let host = Host::new(AGENT, &["LOGIN=echo there >&2; sleep 60"]);
    let mut ssh = host.open();
    ssh.launcher.start(vec![start(1, "sh")]);
    assert_eq!(ssh.said().1, "there\n");
    ssh.launcher.stop(1);
    assert_eq!(ssh.end(), (1, Event::Ended("signal: 15 (SIGTERM)".into())));
    ssh.launcher.start(vec![start(1, "-oProxyCommand=x")]);
    assert!(ssh.failure().contains("cannot be a host's name"));
}

#[test]
fn hosts_that_wait_for_a_turn_are_stopped_at_once() {
    let host = Host::new(AGENT, &["LOGIN=sleep 60"]);
    let mut ssh = host.open();
    ssh.launcher.start((0..33).map(|agent| start(agent, "sh")).collect());
    let waits = loop {
        if let (agent, Event::State(state)) = ssh.next()
            && state.starts_with("waits")
        {
            break agent;
        }
    };
    ssh.launcher.stop(waits);
    assert_eq!(ssh.end().0, waits);
    ssh.launcher.close();
    (0..32).for_each(|_| assert!(matches!(ssh.end().1, Event::Ended(_))));
}
