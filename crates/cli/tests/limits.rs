//! Grids whose workers have limits, or run as another user, and grids that shrink and grow.

#[allow(dead_code)] // what one test file needs, another may not
mod support;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use gridrpc_client::{Call, FunctionRef, Grid, Outcome, Request, RunAs, WorkerLimits};
use gridrpc_core::{CallOptions, Cause, End, Loss, TimeLimit};
use gridrpc_wire::{FunctionForm, Order, Value, encode_values};

use support::{WAIT, function, module, open, open_with, outcome, returned, submit};

const MIB: u64 = 1 << 20;

fn limited(workers: u32, limits: WorkerLimits) -> Grid {
    open_with(workers, limits, env!("CARGO_BIN_EXE_gridrpc").into())
}

fn numbers(call: &Call) -> Vec<i64> {
    let (_, data) = returned(call);
    let parts = data.iter().flat_map(|part| part.chunks_exact(8));
    parts.map(|bytes| i64::from_ne_bytes(bytes.try_into().unwrap())).collect()
}

fn lost(call: &Call) -> Arc<Loss> {
    match outcome(call) {
        Outcome::Ended(End::WorkerLost(loss)) => loss,
        other => panic!("{other:?}"),
    }
}

fn nap(grid: &Grid, function: &Arc<FunctionRef>, seconds: f64, run_limit: Duration) -> Arc<Call> {
    let options = CallOptions { run_limit: Some(run_limit), ..CallOptions::DEFAULT };
    timed(grid, function, seconds, options)
}

fn timed(
    grid: &Grid,
    function: &Arc<FunctionRef>,
    seconds: f64,
    options: CallOptions,
) -> Arc<Call> {
    let mut payload = grid.payload();
    let mut bytes = Vec::new();
    encode_values(&[Value::Float(seconds)], Order::NATIVE, &mut bytes).unwrap();
    payload.add(&bytes).unwrap();
    grid.submit(Request::new(Arc::clone(function), payload.finish(), options)).unwrap()
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < WAIT, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn is_root() -> bool {
    // SAFETY: plain system call.
    unsafe { libc::geteuid() == 0 }
}

/// Folders of control groups that this process has made.
fn groups() -> Vec<PathBuf> {
    let own = format!("gridrpc-{}", std::process::id());
    let found = std::process::Command::new("find")
        .args(["/sys/fs/cgroup", "-type", "d", "-path", &format!("*/{own}/*")])
        .output()
        .unwrap();
    String::from_utf8_lossy(&found.stdout).lines().map(PathBuf::from).collect()
}

#[test]
fn a_call_that_uses_too_much_memory_loses_its_worker_only() {
    let limits = WorkerLimits { memory: Some(64 * MIB), ..WorkerLimits::NONE };
    let grid = limited(2, limits);
    let (hog, nap) = (function(&grid, "hog"), function(&grid, "nap"));
    let neighbour = submit(&grid, &nap, &[Value::Float(0.5)], &[]);
    let loss = lost(&submit(&grid, &hog, &[Value::Int(400 << 20)], &[]));
    if grid.limits().grouped.memory {
        assert_eq!(loss.cause, Cause::MemoryLimit(64 * MIB));
        let text = "had used all of its 64 MiB of memory (limit `memory`)";
        assert!(loss.to_string().ends_with(text), "{loss}");
        assert!(!groups().is_empty(), "no worker is in a group");
    } else {
        // Memory is refused, so that the function aborts.
        assert!(matches!(loss.cause, Cause::Signal { signal: 6, .. }), "{loss}");
    }
    assert!(matches!(outcome(&neighbour), Outcome::Returned(..)), "a neighbour was lost");
    let small = submit(&grid, &hog, &[Value::Int(8 << 20)], &[]);
    assert!(matches!(outcome(&small), Outcome::Returned(..)), "the limit is too low");
}

#[test]
fn shared_memory_of_arguments_does_not_count_for_the_rlimit() {
    let limits = WorkerLimits { memory: Some(64 * MIB), ..WorkerLimits::NONE };
    let grid = limited(1, limits);
    let bump = function(&grid, "echo");
    let data = vec![3_u8; 40 << 20];
    let values = [
        Value::Int(data.len() as i64),
        support::elements(gridrpc_wire::DType::UInt8, data.len(), 1),
        Value::None,
    ];
    let (_, back) = returned(&submit(&grid, &bump, &values, &[&data]));
    assert!(back == [data]);
}

#[test]
fn a_fork_bomb_stays_within_its_limit() {
    let limits = WorkerLimits { processes: Some(8), ..WorkerLimits::NONE };
    let grid = limited(2, limits);
    if !grid.limits().grouped.processes && is_root() {
        eprintln!("skipped: {}", grid.limits());
        return;
    }
    let bomb = function(&grid, "bomb");
    let started = numbers(&submit(&grid, &bomb, &[Value::Int(100), Value::None], &[]));
    assert!((1..100).contains(&started[0]), "{started:?} processes");
    if grid.limits().grouped.processes {
        assert_eq!(started, [7], "the worker counts too");
    }
    let other = function(&grid, "number");
    let call = submit(&grid, &other, &[Value::Int(5), Value::None], &[]);
    assert_eq!(numbers(&call), [5]);
}

#[test]
fn a_worker_opens_only_so_many_files() {
    let limits = WorkerLimits { open_files: Some(200), ..WorkerLimits::NONE };
    let grid = limited(1, limits);
    let files = function(&grid, "files");
    let values = [Value::Int(4000), Value::None, Value::None];
    let counts = numbers(&submit(&grid, &files, &values, &[]));
    assert!((100..200).contains(&counts[0]), "{counts:?}");
    assert_eq!(counts[1], i64::from(libc::EMFILE));
}

#[test]
fn workers_run_as_another_user() {
    let folder = std::env::temp_dir().join(format!("gridrpc-user-{}", std::process::id()));
    let user = RunAs {
        name: "caller".into(),
        uid: 54321,
        gid: 54322,
        groups: vec![54322, 54323],
        home: folder.clone(),
    };
    let limits = WorkerLimits { user: Some(user), processes: Some(50), ..WorkerLimits::NONE };
    if !is_root() {
        eprintln!("skipped: only root may switch to another user");
        return;
    }
    // The folder of the build may be closed to that user.
    std::fs::create_dir_all(&folder).unwrap();
    let (program, copied) = (folder.join("gridrpc"), folder.join("work.so"));
    std::fs::copy(env!("CARGO_BIN_EXE_gridrpc"), &program).unwrap();
    std::fs::copy(module(), &copied).unwrap();
    let grid = open_with(1, limits.clone(), program.clone());
    let body = copied.into_os_string().into_encoded_bytes();
    let register =
        |name: &str| grid.register(&format!("work/{name}"), FunctionForm::Library, body.clone());
    let ids = submit(&grid, &register("ids"), &[Value::None], &[]);
    assert_eq!(numbers(&ids), [54321, 54322, 2, -1]);
    // Shared memory in both directions.
    let data = vec![3_u8; 1 << 20];
    let values = [
        Value::Int(data.len() as i64),
        support::elements(gridrpc_wire::DType::UInt8, data.len(), 1),
        Value::None,
    ];
    let (_, back) = returned(&submit(&grid, &register("echo"), &values, &[&data]));
    assert!(back == [data]);
    // It can be killed and is replaced.
    let stuck = nap(&grid, &register("nap"), 60.0, Duration::from_millis(50));
    assert!(matches!(outcome(&stuck), Outcome::Ended(End::RunLimit(_))));
    let again = submit(&grid, &register("ids"), &[Value::None], &[]);
    assert_eq!(numbers(&again)[0], 54321);
    let spawner = format!("/proc/{}/status", again.profile().pid);
    drop(grid);
    until("the worker outlives its grid", || !std::path::Path::new(&spawner).exists());
    // Nobody else may run this one.
    std::fs::remove_file(&program).unwrap();
    let hidden = open_hidden(limits, &program);
    assert!(hidden.contains("as user `caller`"), "{hidden}");
    std::fs::remove_dir_all(&folder).unwrap();
}

/// The error of a grid whose program the user may not run.
fn open_hidden(limits: WorkerLimits, program: &std::path::Path) -> String {
    use std::os::unix::fs::PermissionsExt;
    std::fs::copy(env!("CARGO_BIN_EXE_gridrpc"), program).unwrap();
    std::fs::set_permissions(program, PermissionsExt::from_mode(0o700)).unwrap();
    let launch = gridrpc_client::Launch {
        program: program.into(),
        arguments: vec!["spawner".into()],
        limits,
        ..Default::default()
    };
    let settings = gridrpc_core::Settings { workers: 1, ..Default::default() };
    let grid = Grid::open(gridrpc_client::Config::here(launch, settings)).unwrap();
    grid.wait_until_ready(WAIT).unwrap_err().to_string()
}

#[test]
fn control_groups_are_gone_with_their_workers() {
    let limits = WorkerLimits { memory: Some(64 * MIB), processes: Some(8), ..WorkerLimits::NONE };
    let grid = limited(3, limits);
    let all = grid.limits().grouped;
    if !all.memory && !all.processes {
        eprintln!("skipped: {}", grid.limits());
        return;
    }
    // The other tests of this process have groups too.
    let bomb = function(&grid, "bomb");
    let call = submit(&grid, &bomb, &[Value::Int(3), Value::None], &[]);
    assert_eq!(numbers(&call), [3]);
    let pid = call.profile().pid;
    let member = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap();
    let own = format!("gridrpc-{}/", std::process::id());
    assert!(member.contains(&own), "{member}");
    let is_there = |group: &PathBuf| {
        let name = group.to_str().unwrap().rsplit_once(&own).unwrap().1.to_owned();
        member.lines().any(|line| line.ends_with(&format!("{own}{name}")))
    };
    assert!(groups().iter().any(is_there), "{:?}", groups());
    drop(grid);
    assert!(!groups().iter().any(is_there), "{:?}", groups());
}

#[test]
fn a_grid_shrinks_and_grows() {
    let grid = open(3);
    let (nap, number) = (function(&grid, "nap"), function(&grid, "number"));
    let running = submit(&grid, &nap, &[Value::Float(0.4)], &[]);
    grid.set_workers(0).unwrap();
    assert_eq!((grid.workers(), grid.stats().workers, grid.stats().ready), (0, 0, 0));
    let waiting = submit(&grid, &number, &[Value::Int(7), Value::None], &[]);
    assert!(matches!(outcome(&running), Outcome::Returned(..)), "a running call was lost");
    let pid = running.profile().pid;
    let process = format!("/proc/{pid}");
    until("a surplus worker does not end", || !std::path::Path::new(&process).exists());
    assert!(!waiting.wait(Duration::from_millis(100)), "it ran without a worker");
    assert_eq!(grid.counts().queued, 1);
    grid.set_workers(2).unwrap();
    assert_eq!(numbers(&waiting), [7]);
    assert!(grid.wait_until_ready(WAIT).unwrap());
    assert_eq!((grid.workers(), grid.stats().workers, grid.stats().losses), (2, 2, 0));
    grid.set_workers(5).unwrap();
    assert!(grid.wait_until_ready(WAIT).unwrap());
    assert_eq!(grid.counts().ready, 5);
}

#[test]
fn a_run_limit_ends_the_call_and_not_those_that_wait() {
    let grid = open(1);
    let sleep = function(&grid, "nap");
    let limit = Duration::from_millis(300);
    let start = Instant::now();
    let stuck = nap(&grid, &sleep, 60.0, limit);
    // It waits for longer than it may run.
    let waiting = nap(&grid, &sleep, 0.0, Duration::from_millis(100));
    let ended = outcome(&stuck);
    let expected = TimeLimit { worker: 0, limit, cpu: false };
    assert!(matches!(ended, Outcome::Ended(End::RunLimit(reached)) if reached == expected));
    assert!((limit..Duration::from_secs(10)).contains(&start.elapsed()));
    assert!(matches!(outcome(&waiting), Outcome::Returned(..)));
}

#[test]
fn a_limit_of_the_processor_time_ends_computing_calls_only() {
    let grid = open(2);
    let limit = Duration::from_millis(200);
    let options = || CallOptions { cpu_limit: Some(limit), ..CallOptions::DEFAULT };
    let sleeps = timed(&grid, &function(&grid, "nap"), 0.7, options());
    let computes = timed(&grid, &function(&grid, "spin"), 60.0, options());
    match outcome(&computes) {
        Outcome::Ended(End::RunLimit(reached)) => {
            assert_eq!((reached.limit, reached.cpu), (limit, true))
        }
        other => panic!("{other:?}"),
    }
    assert!(matches!(outcome(&sleeps), Outcome::Returned(..)), "sleeping uses no processor");
    // The time that earlier calls of the process have used does not count.
    for _ in 0..4 {
        let short = timed(&grid, &function(&grid, "spin"), 0.1, options());
        assert!(matches!(outcome(&short), Outcome::Returned(..)));
    }
}

#[test]
fn limits_that_cannot_hold_are_refused() {
    let limits = WorkerLimits { open_files: Some(3), ..WorkerLimits::NONE };
    let launch = gridrpc_client::Launch { limits, ..Default::default() };
    let settings = gridrpc_core::Settings { workers: 1, ..Default::default() };
    let error = Grid::open(gridrpc_client::Config::here(launch, settings)).unwrap_err();
    assert!(error.to_string().contains("`open_files` of 3 is too low"), "{error}");
}
