//! Real grids of native workers: calls, data, deaths.

use std::sync::Arc;
use std::time::{Duration, Instant};

use gridrpc_core::{Cause, End, Settings};
use gridrpc_runtime::borrowed::Borrowed;
use gridrpc_runtime::client::{Call, Config, FunctionRef, Grid, Launch, Outcome, Request};
use gridrpc_runtime::payload::{Incoming, Payload};
use gridrpc_wire::{FunctionForm, Order, Value, decode_values, encode_values};

const WAIT: Duration = Duration::from_secs(20);

fn open(workers: u32) -> Grid {
    let launch = Launch {
        program: env!("CARGO_BIN_EXE_gridrpc").into(),
        arguments: vec!["spawner".into()],
        ..Launch::default()
    };
    let settings = Settings { workers, cores: 2, ..Settings::default() };
    let grid = Grid::open(Config::here(launch, settings)).expect("a grid");
    assert!(grid.wait_until_ready(WAIT).expect("workers"), "workers did not answer");
    grid
}

fn named(grid: &Grid, name: &str) -> Arc<FunctionRef> {
    grid.register(name, FunctionForm::Named, Vec::new())
}

fn submit(grid: &Grid, function: &Arc<FunctionRef>, values: &[Value], data: &[&[u8]]) -> Arc<Call> {
    let mut payload = grid.payload();
    let mut bytes = Vec::new();
    encode_values(values, Order::NATIVE, &mut bytes).unwrap();
    payload.add(&bytes).unwrap();
    for part in data {
        payload.add(part).unwrap();
    }
    send(grid, function, payload.finish(), None)
}

fn send(
    grid: &Grid,
    function: &Arc<FunctionRef>,
    payload: Payload,
    deadline: Option<Duration>,
) -> Arc<Call> {
    let function = Arc::clone(function);
    let request = Request {
        function,
        payload,
        blobs: Vec::new(),
        deadline,
        idempotent: false,
        priority: 0,
        on: None,
        callbacks: None,
        sinks: Vec::new(),
        after: Vec::new(),
    };
    grid.submit(request).expect("taken")
}

fn outcome(call: &Call) -> Outcome {
    assert!(call.wait(WAIT), "the call does not end");
    call.take_outcome().expect("an outcome")
}

fn returned(call: &Call) -> (Vec<Value>, Vec<Vec<u8>>) {
    match outcome(call) {
        Outcome::Returned(sections) => {
            let (values, data) = sections.split_first().expect("values");
            let values = decode_values(values.bytes(), Order::NATIVE).unwrap();
            (values, data.iter().map(|part| part.bytes().to_vec()).collect())
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn data_of_any_size_comes_back() {
    let grid = open(2);
    let echo = named(&grid, "builtin/echo");
    for len in [0, 1, 4095, 32 << 10, 100_000, 600_000, 5_000_001] {
        let data: Vec<u8> = (0..len).map(|i| (i % 253) as u8).collect();
        for _ in 0..3 {
            let call = submit(&grid, &echo, &[Value::Bytes(1), Value::Int(-7)], &[&data]);
            let (values, back) = returned(&call);
            assert_eq!(values, [Value::Bytes(1), Value::Int(-7)]);
            assert!(back == [data.clone()], "{len} bytes came back changed");
        }
    }
}

/// A chunk: a function, arguments of an item, limit in ns, arguments.
fn each(name: &str, width: i64, limit: i64, arguments: &[Value]) -> Vec<Value> {
    let mut values = vec![Value::Text(name.into()), Value::Int(width), Value::Int(limit)];
    values.extend_from_slice(arguments);
    values
}

#[test]
fn a_chunk_gives_each_item_its_own_results() {
    let grid = open(1);
    let function = named(&grid, "builtin/each");
    let run = |values: &[Value]| returned(&submit(&grid, &function, values, &[])).0;
    let ints = |values: &[i64]| values.iter().map(|v| Value::Int(*v)).collect::<Vec<_>>();

    let echoed = run(&each("builtin/echo", 2, 0, &ints(&[1, 2, 3, 4])));
    assert_eq!(echoed, ints(&[2, 2, 1, 2, 2, 3, 4]));
    assert_eq!(run(&each("builtin/null", 1, 0, &ints(&[7, 8, 9]))), ints(&[3, 0, 0, 0]));
    assert_eq!(run(&each("builtin/null", 1, 0, &[])), ints(&[0]));

    let some = [Value::Float(0.0), Value::Text("late".into()), Value::Float(0.0)];
    let failed = run(&each("builtin/sleep", 1, 0, &some));
    assert_eq!(failed[0], Value::Int(1), "the results before the error are there");
    let [.., Value::Text(error), Value::Text(message)] = &failed[..] else { panic!("{failed:?}") };
    assert_eq!(error, "gridrpc.ArgumentError");
    assert!(message.contains("seconds"), "{message}");
}

#[test]
fn a_chunk_ends_when_its_time_is_up_or_its_results_are_many() {
    let grid = open(1);
    let function = named(&grid, "builtin/each");
    let run = |values: &[Value]| returned(&submit(&grid, &function, values, &[])).0;
    let late = run(&each("builtin/sleep", 1, 1, &[Value::Float(0.001), Value::Float(0.001)]));
    assert_eq!(late[0], Value::Int(1), "the first item is always run");
    assert_eq!(late.len(), 3);
    let many = run(&each("builtin/echo", 1, 0, &vec![Value::None; 60_000]));
    assert_eq!(many[0], Value::Int(25_000));

    // Bytes come in sections, of which a message has at most 1,024.
    let arguments: Vec<Value> = (0..500).flat_map(|_| [Value::Bytes(1), Value::None]).collect();
    let values = each("builtin/echo", 2, 0, &arguments);
    let (results, data) = returned(&submit(&grid, &function, &values, &[b"abc"]));
    assert_eq!(results[0], Value::Int(500));
    assert!(data.len() == 500 && data.iter().all(|part| part == b"abc"));
}

#[test]
fn broken_chunks_are_errors() {
    let grid = open(1);
    let function = named(&grid, "builtin/each");
    let broken = [
        Vec::new(),
        vec![Value::Int(1), Value::Int(1), Value::Int(0)],
        each("builtin/no_such", 1, 0, &[]),
        each("builtin/each", 1, 0, &[]),
        each("builtin/null", 0, 0, &[]),
        each("builtin/null", -1, 0, &[]),
        each("builtin/null", i64::MAX, 0, &[Value::None]),
        each("builtin/null", 2, 0, &[Value::None]),
        each("builtin/null", 1, -1, &[Value::None]),
    ];
    for values in broken {
        let call = submit(&grid, &function, &values, &[]);
        assert!(matches!(outcome(&call), Outcome::Raised { .. }), "{values:?}");
    }
}

#[test]
fn ten_thousand_calls_end_in_their_own_results() {
    let grid = open(2);
    let echo = named(&grid, "builtin/echo");
    let calls: Vec<_> = (0..10_000).map(|i| submit(&grid, &echo, &[Value::Int(i)], &[])).collect();
    for (i, call) in calls.iter().enumerate() {
        assert_eq!(returned(call).0, [Value::Int(i as i64)]);
    }
    assert_eq!(grid.counts().live, 0);
}

#[test]
fn a_killed_worker_fails_its_call_and_is_replaced() {
    let grid = open(1);
    let sleep = named(&grid, "builtin/sleep");
    let quick = submit(&grid, &sleep, &[Value::Float(0.0)], &[]);
    returned(&quick);
    let pid = quick.profile().pid;
    let running = submit(&grid, &sleep, &[Value::Float(60.0)], &[]);
    let waiting = submit(&grid, &sleep, &[Value::Float(0.0)], &[]);
    std::thread::sleep(Duration::from_millis(100));
    // SAFETY: plain system call.
    unsafe { libc::kill(pid as i32, libc::SIGKILL) };
    match outcome(&running) {
        Outcome::Ended(End::WorkerLost(loss)) => {
            assert_eq!((loss.pid, loss.worker), (pid, 0));
            assert!(matches!(loss.cause, Cause::Signal { signal: 9, .. }), "{loss}");
        }
        other => panic!("{other:?}"),
    }
    returned(&waiting);
    assert_ne!(waiting.profile().pid, pid, "it ran on the dead worker");
}

#[test]
fn a_deadline_ends_the_call_and_its_worker() {
    let grid = open(1);
    let sleep = named(&grid, "builtin/sleep");
    let mut payload = grid.payload();
    let mut bytes = Vec::new();
    encode_values(&[Value::Float(60.0)], Order::NATIVE, &mut bytes).unwrap();
    payload.add(&bytes).unwrap();
    let deadline = Some(Duration::from_millis(50));
    let start = Instant::now();
    let call = send(&grid, &sleep, payload.finish(), deadline);
    assert!(matches!(outcome(&call), Outcome::Ended(End::DeadlineExceeded(Some(0)))));
    assert!(start.elapsed() < Duration::from_secs(5));
    returned(&submit(&grid, &sleep, &[Value::Float(0.0)], &[]));
}

#[test]
fn errors_of_native_functions_arrive() {
    let grid = open(1);
    let unknown = named(&grid, "builtin/nonsense");
    match outcome(&submit(&grid, &unknown, &[], &[])) {
        Outcome::Raised { error, message, .. } => {
            assert_eq!(error, "gridrpc.FunctionNotFound");
            assert!(message.contains("builtin/nonsense"), "{message}");
        }
        other => panic!("{other:?}"),
    }
    let sleep = named(&grid, "builtin/sleep");
    for bad in [Value::Float(-1.0), Value::Float(f64::NAN), Value::Text("long".into())] {
        let call = submit(&grid, &sleep, &[bad], &[]);
        assert!(matches!(outcome(&call), Outcome::Raised { .. }));
    }
}

#[test]
fn closing_ends_calls_and_workers() {
    let grid = open(3);
    let sleep = named(&grid, "builtin/sleep");
    let call = submit(&grid, &sleep, &[Value::Float(60.0)], &[]);
    while call.profile().pid == 0 {
        std::thread::yield_now();
    }
    let pid = call.profile().pid;
    let start = Instant::now();
    grid.close();
    assert!(start.elapsed() < Duration::from_secs(3));
    assert!(matches!(outcome(&call), Outcome::Ended(End::Closed)));
    assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists(), "a worker is left over");
}

#[test]
fn a_program_that_cannot_start_workers_is_reported() {
    for (program, arguments) in [("/nonexistent/program", vec![]), ("/bin/false", vec![])] {
        let launch = Launch { program: program.into(), arguments, ..Launch::default() };
        let settings = Settings { workers: 2, ..Settings::default() };
        let grid = Grid::open(Config::here(launch, settings)).expect("a grid");
        let error = grid.wait_until_ready(WAIT).expect_err("no workers");
        assert!(error.to_string().starts_with("no worker could be started"), "{error}");
    }
}

/// Callers that wait take turns in reading answers: none may be left waiting when they change.
#[test]
fn no_wake_up_is_lost_when_many_threads_wait() {
    let grid = open(3);
    let waiter = grid.waiter();
    let null = named(&grid, "builtin/null");
    let sleep = named(&grid, "builtin/sleep");
    std::thread::scope(|scope| {
        for thread in 0..6 {
            let (grid, waiter, null, sleep) = (&grid, waiter.clone(), &null, &sleep);
            scope.spawn(move || {
                for round in 0..2000 {
                    let pause = thread == 5 && round % 100 == 0;
                    let call = if pause {
                        submit(grid, sleep, &[Value::Float(0.001)], &[])
                    } else {
                        submit(grid, null, &[], &[])
                    };
                    // Half of them read for themselves, the others are told.
                    let ended =
                        if thread % 2 == 0 { waiter.wait(&call, WAIT) } else { call.wait(WAIT) };
                    assert!(ended, "thread {thread} waits for ever in round {round}");
                    if thread == 0 && round % 500 == 0 {
                        // Long enough for the grid's own thread to come back.
                        std::thread::sleep(Duration::from_millis(5));
                    }
                }
            });
        }
    });
    assert_eq!(grid.counts().live, 0);
}

/// Results of `builtin/task`: the segment that its output lies in, and the output.
fn output_of(call: &Call) -> Borrowed {
    let Outcome::Returned(sections) = outcome(call) else { panic!("it did not return") };
    let shared = sections.into_iter().find_map(|section| match section {
        Incoming::Shared(stretch) => Some(stretch),
        _ => None,
    });
    shared.expect("an output in shared memory")
}

fn task(grid: &Grid, seconds: f64) -> Arc<Call> {
    let function = named(grid, "builtin/task");
    let nothing = Value::None;
    let values = [Value::Float(seconds), nothing.clone(), nothing, Value::Int(2 << 20)];
    submit(grid, &function, &values, &[])
}

#[test]
fn memory_of_a_result_is_used_again_by_the_call_that_was_sent_before_it_was_taken() {
    let grid = open(1);
    let calls: Vec<_> = (0..4).map(|_| task(&grid, 0.3)).collect();
    let segments: Vec<_> = calls.iter().map(|call| output_of(call).lease().unwrap()).collect();
    assert!(segments.iter().all(|lease| *lease == segments[0]), "{segments:?}");
}

#[test]
fn memory_of_a_result_is_left_alone_while_somebody_reads_it() {
    let grid = open(1);
    let echo = named(&grid, "builtin/echo");
    let filled = |byte: u8| {
        let call = submit(&grid, &echo, &[Value::Bytes(1)], &[&vec![byte; 2 << 20]]);
        output_of(&call)
    };
    let held: Vec<_> = (1..6).map(filled).collect();
    // Now and then one is given back, in the middle of others.
    drop(filled(7));
    let more = filled(8);
    for (stretch, byte) in held.iter().zip(1..).chain([(&more, 8)]) {
        assert!(stretch.bytes().iter().all(|one| *one == byte), "result {byte} has changed");
    }
}

#[test]
fn a_result_of_a_lost_worker_gives_nothing_back_to_the_next() {
    let grid = open(1);
    let first = task(&grid, 0.0);
    let old = output_of(&first);
    let ended = task(&grid, 60.0);
    std::thread::sleep(Duration::from_millis(100));
    // SAFETY: plain system call.
    unsafe { libc::kill(first.profile().pid as i32, libc::SIGKILL) };
    assert!(matches!(outcome(&ended), Outcome::Ended(End::WorkerLost(_))));
    let echo = named(&grid, "builtin/echo");
    let call = submit(&grid, &echo, &[Value::Bytes(1)], &[&vec![1; 2 << 20]]);
    let new = output_of(&call);
    assert_eq!(new.lease(), old.lease(), "segments of both processes have the same numbers");
    drop(old);
    let call = submit(&grid, &echo, &[Value::Bytes(1)], &[&vec![2; 2 << 20]]);
    let newer = output_of(&call);
    assert_ne!(newer.lease(), new.lease());
    assert!(new.bytes().iter().all(|byte| *byte == 1), "a result that is held has changed");
}
