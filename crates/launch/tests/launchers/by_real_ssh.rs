//! The ssh launcher with real sshds in network namespaces, set up by python/gridbench_testbed/links/sshd.py.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, PoisonError};

use gridrpc_config::{HostGroup, LauncherKind};
use gridrpc_launch::Event;
use serde_json::{Value, json};

use crate::support::{AGENT, Launching, folder, group, script, start};

/// A test network; dropping it takes it down.
struct TestNetwork {
    process: Child,
    requests: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    config: String,
    client: String,
}

impl TestNetwork {
    /// None, with a printed reason, where the network cannot be set up.
    fn new(nodes: u32) -> Option<TestNetwork> {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python");
        let script = sources.join("gridbench_testbed/links/sshd.py");
        let python = std::env::var("PYO3_PYTHON").unwrap_or_else(|_| "python3".into());
        let mut command = Command::new(python);
        // It needs no installed packages.
        command.env("PYTHONPATH", sources);
        command.arg(script).arg(nodes.to_string()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().expect("a Python");
        let mut answers = BufReader::new(process.stdout.take().unwrap());
        let reported = answer(&mut answers);
        if let Some(why) = reported["skip"].as_str() {
            eprintln!("not tested: {why}");
            process.wait().unwrap();
            return None;
        }
        let text = |name: &str| reported[name].as_str().unwrap().to_owned();
        let (config, client) = (text("config"), text("client"));
        Some(TestNetwork { requests: process.stdin.take(), process, answers, config, client })
    }

    /// Calls a method of the test network.
    fn ask(&mut self, request: &Value) -> Value {
        writeln!(self.requests.as_mut().unwrap(), "{request}").unwrap();
        answer(&mut self.answers)
    }

    /// Runs a script in a node.
    fn run(&mut self, node: u32, script: &str) -> String {
        self.ask(&json!(["run", node, script])).as_str().unwrap().to_owned()
    }

    fn group(&self) -> HostGroup {
        let command = ["ssh", "-F", &self.config].map(str::to_owned).to_vec();
        group(LauncherKind::Ssh { command })
    }

    /// Why a host is unreachable or its agent failed to start.
    fn failure(&self, group: &HostGroup, host: &str) -> String {
        let mut ssh = Launching::open(group, &program(""));
        ssh.launcher.start(vec![start(1, host)]);
        ssh.failure()
    }
}

impl Drop for TestNetwork {
    fn drop(&mut self) {
        // It takes everything down when its input ends.
        self.requests = None;
        let _ = self.process.wait();
    }
}

fn answer(answers: &mut impl BufRead) -> Value {
    let mut line = String::new();
    answers.read_line(&mut line).unwrap();
    serde_json::from_str(&line).expect("the rig has failed")
}

/// A stand-in for the program, with these extra lines.
fn program(more: &str) -> PathBuf {
    script(&folder(), "gridrpc", &format!("{AGENT}\nexit\n{more}"))
}

/// One test network at a time: all use the same addresses.
static ONE: Mutex<()> = Mutex::new(());

#[test]
fn agents_are_staged_once_on_hosts_of_any_kind_and_find_a_way_back() {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(mut rig) = TestNetwork::new(2) else { return };
    rig.ask(&json!(["login_shell", 1, "/bin/bash"]));
    rig.run(1, "echo 'echo welcome; printf \"no end\"' >$HOME/.bashrc");
    let program = program(&"# filler\n".repeat(300_000));
    for staged_now in [true, false] {
        let mut ssh = Launching::open(&rig.group(), &program);
        // The second host goes through the first.
        ssh.launcher.start(vec![start(1, "node1"), start(2, "node2-behind-node1")]);
        let mut copied = 0;
        for _ in 0..2 {
            let (agent, ticket) = loop {
                match ssh.next() {
                    (_, Event::State(state)) => copied += u32::from(state == "copies the program"),
                    (agent, Event::Said(line)) if line.starts_with(b"has ") => {
                        let word = String::from_utf8(line[4..].to_vec()).unwrap();
                        break (agent, gridrpc_transport::Ticket::decode(&word).unwrap());
                    }
                    (_, Event::Said(_)) => {}
                    other => panic!("{other:?}"),
                }
            };
            let [seen, named, back] = &ticket.addresses[..] else { panic!("{ticket:?}") };
            if agent == 1 {
                assert_eq!(*seen, format!("{}:4567", rig.client));
            }
            assert_eq!(named, "10.1.2.3:4567");
            assert!(back.starts_with("127.0.0.1:"), "{back}");
        }
        assert_eq!(copied, if staged_now { 2 } else { 0 });
        // Closing standard input stops an agent.
        ssh.launcher.stop(1);
        assert_eq!(ssh.said(), (1, "leaves\n".into()));
        assert_eq!(ssh.end(), (1, Event::Ended("exit status: 0".into())));
        ssh.launcher.close();
        assert_eq!(ssh.end(), (2, Event::Ended("exit status: 0".into())));
    }
    // Whoever connects through the reverse tunnel reaches the client's port.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut ssh = Launching::open(&rig.group(), &program);
    let mut one = start(1, "node1");
    one.ticket.addresses = vec![listener.local_addr().unwrap().to_string()];
    ssh.launcher.start(vec![one]);
    let back = ssh.ticket().1.addresses.pop().unwrap();
    let port = back.rsplit_once(':').unwrap().1;
    rig.run(1, &format!("bash -c 'echo through >/dev/tcp/127.0.0.1/{port}'"));
    let mut line = String::new();
    BufReader::new(listener.accept().unwrap().0).read_line(&mut line).unwrap();
    assert_eq!(line, "through\n");
    // A host goes down.
    rig.ask(&json!(["kill", 1]));
    let (_, Event::Ended(how)) = ssh.end() else { panic!("not ended") };
    assert!(how.starts_with("ssh has lost the connection to node1: "), "{how}");
}

#[test]
fn hosts_that_cannot_be_reached_are_reported_with_what_to_do() {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(mut rig) = TestNetwork::new(1) else { return };
    let group = rig.group();
    let says = |rig: &TestNetwork, host: &str, what: &str| {
        let why = rig.failure(&group, host);
        assert!(why.contains(host) && why.contains(what), "{why}");
    };
    says(&rig, "nowhere.invalid", "is not known here: see how it is written");
    rig.ask(&json!(["let_in", 1, {"yes": false}]));
    says(&rig, "node1", "ssh-copy-id node1");
    rig.ask(&json!(["let_in", 1, {"yes": true}]));
    rig.ask(&json!(["know", 1, {"yes": false}]));
    says(&rig, "node1", "node1 true` once by hand");
    rig.ask(&json!(["know", 1, {"yes": true}]));
    rig.ask(&json!(["change_host_key", 1]));
    says(&rig, "node1", "shows another host key than before");
    rig.ask(&json!(["know", 1, {"yes": true}]));
    rig.ask(&json!(["drop", 1]));
    let mut hasty = group.clone();
    let command = ["ssh", "-F", &rig.config, "-o", "ConnectTimeout=1"].map(str::to_owned);
    hasty.launcher = LauncherKind::Ssh { command: command.to_vec() };
    let why = rig.failure(&hasty, "node1");
    assert!(why.contains("node1 did not answer ssh in time"), "{why}");
    rig.ask(&json!(["mend", 1]));
    rig.ask(&json!(["kill", 1]));
    says(&rig, "node1", "refuses connections");
}

#[test]
fn hosts_that_cannot_keep_or_run_the_program_are_reported_with_what_to_do() {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(mut rig) = TestNetwork::new(1) else { return };
    let mut group = rig.group();
    let program = program(&"# filler\n".repeat(50_000));
    rig.run(1, "cd $HOME; mkdir full fixed still; mount -t tmpfs -o size=100k tmpfs full");
    rig.run(1, "cd $HOME; mount -t tmpfs -o ro tmpfs fixed; mount -t tmpfs -o noexec tmpfs still");
    for (folder, what) in [
        ("~/full", "No space left on device; see that there is room"),
        ("~/fixed", "Read-only file system; make that folder writable"),
        ("~/still", "its file system may be mounted `noexec`"),
    ] {
        group.staging = Some(folder.into());
        let mut ssh = Launching::open(&group, &program);
        ssh.launcher.start(vec![start(1, "node1")]);
        let why = ssh.failure();
        assert!(why.starts_with("on node1 ") && why.contains(what), "{why}");
        assert!(why.contains(&folder[1..]) && why.contains("`staging` in grid.toml"), "{why}");
    }
    assert_eq!(rig.run(1, "cd $HOME; find full still -name 'gridrpc*'"), "", "nothing is left");
    rig.run(1, "cd $HOME; echo 'echo Linux riscv64' >uname; chmod 755 uname");
    rig.run(1, "mount --bind $HOME/uname $(command -v uname)");
    group.staging = None;
    let mut ssh = Launching::open(&group, &program);
    ssh.launcher.start(vec![start(1, "node1")]);
    let why = ssh.failure();
    assert!(why.contains("node1 is a machine of another kind (Linux riscv64)"), "{why}");
}

#[test]
fn hosts_that_share_a_home_stage_at_once() {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(rig) = TestNetwork::new(2) else { return };
    let shared = folder();
    let mut group = rig.group();
    group.staging = Some(shared.display().to_string());
    let mut ssh = Launching::open(&group, &program(&"# filler\n".repeat(500_000)));
    let mut other = start(2, "node2");
    other.ticket.secret[0] = 2;
    ssh.launcher.start(vec![start(1, "node1"), other]);
    let mut there = [ssh.ticket().0, ssh.ticket().0];
    there.sort_unstable();
    assert_eq!(there, [1, 2]);
    let hash = std::fs::read_dir(shared).unwrap().next().unwrap().unwrap().path();
    assert_eq!(std::fs::read_dir(hash).unwrap().count(), 1);
}
