//! Launchers on this machine: children of the client, and a user's own program.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use gridrpc_config::LauncherKind;
use gridrpc_launch::Event;

use crate::support::{AGENT, Launching, folder, group, script, start};

fn local(prefix: &[&str], program: &Path) -> Launching {
    let prefix = prefix.iter().map(ToString::to_string).collect();
    Launching::open(&group(LauncherKind::Local { prefix }), program)
}

fn agent(text: &str) -> PathBuf {
    script(&folder(), "agent", text)
}

fn ended(how: &str) -> Event {
    Event::Ended(how.into())
}

#[test]
fn an_agent_gets_its_ticket_and_ends_when_it_is_stopped() {
    let mut local = local(&["env", "A=1"], &agent(AGENT));
    local.launcher.start(vec![start(3, "localhost")]);
    assert_eq!(local.ticket(), (3, start(3, "").ticket));
    local.launcher.stop(3);
    assert_eq!(local.end(), (3, ended("signal: 15 (SIGTERM)")));
    local.launcher.stop(3);
    assert!(local.is_silent());
}

#[test]
fn what_an_agent_says_last_is_reported_before_its_end() {
    let mut local = local(&[], &agent("echo one >&2; printf two >&2; exit 4"));
    local.launcher.start(vec![start(1, "localhost")]);
    let reported: Vec<Event> = (0..3).map(|_| local.next().1).collect();
    let said = |line: &[u8]| Event::Said(line.to_vec());
    assert_eq!(reported, [said(b"one\n"), said(b"two"), ended("exit status: 4")]);
}

#[test]
fn a_process_that_an_agent_leaves_behind_does_not_keep_its_end_from_being_told() {
    let mut local = local(&[], &agent("sleep 20 & echo left >&2; exit 0"));
    let begin = Instant::now();
    local.launcher.start(vec![start(1, "localhost")]);
    assert_eq!(local.end(), (1, ended("exit status: 0")));
    assert!(begin.elapsed() < Duration::from_secs(10));
}

#[test]
fn one_that_does_not_want_to_end_is_killed() {
    let program = agent("trap '' TERM; echo there >&2; while :; do sleep 0.1; done");
    let mut stubborn = group(LauncherKind::Local { prefix: Vec::new() });
    stubborn.stop_timeout = Duration::from_millis(300);
    let mut local = Launching::open(&stubborn, &program);
    local.launcher.start(vec![start(1, "localhost"), start(2, "localhost")]);
    local.said();
    local.said();
    local.launcher.stop(1);
    assert_eq!(local.end(), (1, ended("signal: 9 (SIGKILL)")));
    local.launcher.close();
    assert_eq!(local.end(), (2, ended("signal: 9 (SIGKILL)")));
}

#[test]
fn a_program_that_is_not_there_is_reported() {
    let mut local = local(&[], Path::new("/nowhere/gridrpc"));
    local.launcher.start(vec![start(1, "localhost")]);
    let why = local.failure();
    assert!(why.starts_with("`/nowhere/gridrpc` could not be started on this machine"), "{why}");
}

#[test]
fn many_start_at_once_and_close_ends_all() {
    let mut local = local(&[], &agent(AGENT));
    local.launcher.start((0..50).map(|number| start(number, "localhost")).collect());
    let mut there: Vec<u32> = (0..50).map(|_| local.ticket().0).collect();
    there.sort_unstable();
    assert!(there.into_iter().eq(0..50));
    local.launcher.close();
    let mut gone: Vec<u32> = (0..50).map(|_| local.end().0).collect();
    gone.sort_unstable();
    assert!(gone.into_iter().eq(0..50));
}

#[test]
fn stopped_on_its_way_it_ends() {
    let mut local = local(&[], &agent(AGENT));
    for number in 0..20 {
        local.launcher.start(vec![start(number, "localhost")]);
        local.launcher.stop(number);
        assert!(matches!(local.end(), (reported, Event::Ended(_)) if reported == number));
    }
}

fn program(command: &[&str]) -> Launching {
    let command = command.iter().map(ToString::to_string).collect();
    Launching::open(&group(LauncherKind::Program { command }), Path::new("/nowhere"))
}

/// A launcher program that answers its input like this.
fn answering(answers: &str) -> Launching {
    let text = format!("read -r hello; while read -r word agent rest; do {answers}; done");
    program(&[script(&folder(), "launcher", &text).to_str().unwrap()])
}

#[test]
fn the_example_starts_agents_and_ends_them() {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/launchers/ssh.sh");
    let gridrpc = format!("GRIDRPC={}", agent(AGENT).display());
    let mut example = program(&["env", &gridrpc, "sh", example.to_str().unwrap()]);
    example.launcher.start(vec![start(5, "localhost"), start(6, "localhost")]);
    let mut there = [example.ticket(), example.ticket()];
    there.sort_by_key(|(agent, _)| *agent);
    assert_eq!(there, [5, 6].map(|agent| (agent, start(agent, "").ticket)));
    example.launcher.stop(5);
    assert_eq!(example.said(), (5, "leaves\n".into()));
    assert_eq!(example.end(), (5, ended("with status 0")));
    // Its number can be reused.
    example.launcher.start(vec![start(5, "localhost")]);
    assert_eq!(example.ticket().0, 5);
    example.launcher.close();
    let mut gone = [example.end(), example.end()];
    gone.sort_by_key(|(agent, _)| *agent);
    assert_eq!(gone, [5, 6].map(|agent| (agent, ended("with status 0"))));
}

#[test]
fn all_that_a_launcher_may_say_is_understood() {
    let mut answers = answering(
        "echo state $agent waits in the queue; echo nonsense; echo 7; echo started 99; \
         echo said $agent a word; echo failed $agent no room",
    );
    answers.launcher.start(vec![start(1, "x")]);
    let reported: Vec<(u32, Event)> = (0..3).map(|_| answers.next()).collect();
    let state = Event::State("waits in the queue".into());
    let expected = [state, Event::Said(b"a word\n".into()), Event::Failed("no room".into())];
    assert_eq!(reported, expected.map(|event| (1, event)));
}

#[test]
fn a_launcher_that_ends_takes_its_agents_along_and_is_started_again() {
    let mut dying = answering(
        "[ $agent = 1 ] && echo started $agent; \
         [ $agent = 2 ] && { echo out of words >&2; exit 3; }",
    );
    for _ in 0..2 {
        dying.launcher.start(vec![start(1, "x"), start(2, "x")]);
        let mut ends = [dying.end(), dying.end()];
        ends.sort_by_key(|(agent, _)| *agent);
        let [(1, Event::Ended(first)), (2, Event::Failed(second))] = ends else {
            panic!("{ends:?}");
        };
        assert_eq!(first, second);
        assert!(first.ends_with("has ended (exit status: 3): out of words"), "{first}");
    }
}

#[test]
fn a_launcher_that_is_not_there_is_reported() {
    let mut nowhere = program(&["/nowhere/launcher"]);
    nowhere.launcher.start(vec![start(1, "x")]);
    assert!(nowhere.failure().starts_with("the launcher `/nowhere/launcher` could not be started"));
    nowhere.launcher.start(vec![start(1, "two words")]);
    assert!(nowhere.failure().contains("two words"));
}

#[test]
fn a_launcher_that_ignores_the_end_is_ended() {
    let mut deaf = answering("trap '' TERM; echo started $agent; while :; do sleep 0.1; done");
    deaf.launcher.start(vec![start(1, "x")]);
    assert_eq!(deaf.next(), (1, Event::State("has started".into())));
    let begin = Instant::now();
    deaf.launcher.close();
    assert!(begin.elapsed() < Duration::from_secs(8));
    let (_, Event::Ended(how)) = deaf.end() else { panic!("not ended") };
    assert!(how.contains("SIGKILL"), "{how}");
}
