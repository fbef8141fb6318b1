//! A grid whose host is a session, which the test plays.

mod played;

use std::cell::Cell;
use std::fs;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use gridrpc_client::{Config, Grid, HostGroups, Launch, RemoteWorkers, Request};
use gridrpc_config::from_url;
use gridrpc_core::{CallOptions, Settings};
use gridrpc_wire::{FunctionForm, Message};
use played::{Daemon, WAIT, wait_for_detail};

/// Set in the process that has the grid.
const PART: &str = "GRIDRPC_TEST_SESSIONS";

/// Runs a test again in a process with its own state folder. Returns that folder there, and none here.
fn state_folder(test: &str) -> Option<PathBuf> {
    if std::env::var_os(PART).is_some() {
        return std::env::var_os("XDG_STATE_HOME").map(PathBuf::from);
    }
    let folder = std::env::temp_dir().join(format!("gridrpc-{test}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    let mut again = Command::new(std::env::current_exe().unwrap());
    again.args(["--exact", test, "--nocapture"]).env(PART, "1").env("XDG_STATE_HOME", &folder);
    let ran = again.output().unwrap();
    let _ = fs::remove_dir_all(&folder);
    let output = String::from_utf8_lossy(&ran.stdout) + String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success() && output.contains("1 passed"), "{output}");
    None
}

fn listen(state: &Path) -> UnixListener {
    let folder = state.join("gridrpc/sessions/work");
    fs::create_dir_all(&folder).unwrap();
    UnixListener::bind(folder.join("socket")).unwrap()
}

fn open() -> Grid {
    open_url("session:work")
}

fn open_url(url: &str) -> Grid {
    let groups = HostGroups {
        list: vec![from_url(url).unwrap()],
        program: "/nowhere".into(),
        workers: RemoteWorkers::default(),
    };
    let settings = Settings { workers: 0, ..Settings::default() };
    let config = Config { groups: Some(groups), ..Config::here(Launch::default(), settings) };
    Grid::open(config).unwrap()
}

#[test]
fn a_session_that_does_not_run_is_an_error_with_its_remedy() {
    let test = "a_session_that_does_not_run_is_an_error_with_its_remedy";
    let Some(_state) = state_folder(test) else { return };
    let grid = open();
    let error = grid.wait_for_workers(1, WAIT).unwrap_err().to_string();
    let why = "session `work` does not run: start it by `gridrpc session start work`";
    assert!(error.contains(why), "{error}");
    grid.close();
}

#[test]
fn a_session_that_is_lost_is_dialled_again() {
    let Some(state) = state_folder("a_session_that_is_lost_is_dialled_again") else { return };
    let listener = listen(&state);
    let grid = open();
    let mut daemon = Daemon::accept(&listener);
    daemon.join(2);
    assert!(grid.wait_for_workers(2, WAIT).unwrap());
    drop(daemon);
    wait_for_detail(&grid, "session `work` is gone (it closed the connection)");
    Daemon::accept(&listener).join(1);
    grid.close();
}

#[test]
fn a_grid_leaves_its_session_when_it_closes() {
    let Some(state) = state_folder("a_grid_leaves_its_session_when_it_closes") else { return };
    let listener = listen(&state);
    let grid = open();
    let mut daemon = Daemon::accept(&listener);
    daemon.join(2);
    assert!(grid.wait_for_workers(2, WAIT).unwrap());
    // The session keeps its end of the connection.
    grid.close();
    assert!(daemon.receive(|message| matches!(message, Message::Goodbye)));
    assert!(!daemon.receive(|_| false), "the client has ended the connection");
    let hosts = grid.hosts();
    assert!(hosts[0].detail.contains("the grid was closed"), "{hosts:?}");
}

#[test]
fn a_client_without_calls_answers_one_ping_in_a_heartbeat() {
    let test = "a_client_without_calls_answers_one_ping_in_a_heartbeat";
    let Some(state) = state_folder(test) else { return };
    let heartbeat = Duration::from_secs(2);
    let begin = Instant::now();
    let listener = listen(&state);
    let grid = open_url("session:work?heartbeat=2");
    let mut daemon = Daemon::accept(&listener);
    daemon.join(1);
    assert!(grid.wait_for_workers(1, WAIT).unwrap());
    for number in 0..25 {
        daemon.send(&Message::Ping { number });
        thread::sleep(heartbeat / 20);
    }
    let function = grid.register("null", FunctionForm::Named, Vec::new());
    let request = Request::new(function, grid.payload().finish(), CallOptions::DEFAULT);
    let _call = grid.submit(request).unwrap();
    let answers = Cell::new(0);
    assert!(daemon.receive(|message| {
        answers.set(answers.get() + u128::from(matches!(message, Message::Pong { .. })));
        matches!(message, Message::HostCall(_))
    }));
    let most = begin.elapsed().as_millis() / heartbeat.as_millis();
    assert!((1..=most).contains(&answers.get()), "{} of at most {most}", answers.get());
    grid.close();
}

#[test]
fn callers_that_take_turns_leave_answers_to_the_grid() {
    let Some(state) = state_folder("callers_that_take_turns_leave_answers_to_the_grid") else {
        return;
    };
    let listener = listen(&state);
    let grid = open();
    let mut daemon = Daemon::accept(&listener);
    daemon.join(1);
    assert!(grid.wait_for_workers(1, WAIT).unwrap());
    let function = grid.register("null", FunctionForm::Named, Vec::new());
    let request = Request::new(function, grid.payload().finish(), CallOptions::DEFAULT);
    let call = grid.submit(request).unwrap();
    let waiter = grid.waiter();
    let lead = |caller| {
        let led = waiter.lead(caller, &call, Duration::from_millis(1));
        // The grid's own thread has time to step back, but not to return.
        thread::sleep(Duration::from_micros(200));
        led
    };
    assert!((0..100).all(|turn| lead(turn % 2).is_none()));
    let until = Instant::now() + WAIT;
    while lead(0).is_none() {
        assert!(Instant::now() < until, "a single caller never leads");
    }
    grid.close();
}
