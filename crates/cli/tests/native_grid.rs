//! Real grids of native workers: calls, data, worker losses.

#[allow(dead_code)] // what one test file needs, another may not
mod support;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use gridrpc_client::{Call, Config, Grid, Launch, Outcome};
use gridrpc_core::{Cause, End, Settings};
use gridrpc_link::payload::Incoming;
use gridrpc_shm::borrowed::Borrowed;
use gridrpc_wire::{DType, FunctionForm, Order, Value, encode_values};

use support::{WAIT, elements, function, module, open, outcome, returned, send, submit};

/// Values for `echo`.
fn echoed(len: usize) -> [Value; 3] {
    [Value::Int(len as i64), elements(DType::UInt8, len, 1), Value::None]
}

#[test]
fn data_of_any_size_comes_back() {
    let grid = open(2);
    let echo = function(&grid, "echo");
    for len in [0, 1, 4095, 32 << 10, 100_000, 600_000, 5_000_001] {
        let data: Vec<u8> = (0..len).map(|i| (i % 253) as u8).collect();
        for _ in 0..3 {
            let call = submit(&grid, &echo, &echoed(len), &[&data]);
            let (values, back) = returned(&call);
            assert_eq!(values, [Value::None, Value::None, elements(DType::UInt8, len, 1)]);
            assert!(back == [data.clone()], "{len} bytes came back changed");
        }
    }
}

#[test]
fn ten_thousand_calls_end_in_their_own_results() {
    let grid = open(2);
    let number = function(&grid, "number");
    let send = |i: i64| submit(&grid, &number, &[Value::Int(i), Value::None], &[]);
    let calls: Vec<_> = (0..10_000).map(send).collect();
    for (i, call) in calls.iter().enumerate() {
        assert_eq!(returned(call).1, [(i as i64).to_ne_bytes()]);
    }
    assert_eq!(grid.counts().live, 0);
}

#[test]
fn a_killed_worker_fails_its_call_and_is_replaced() {
    let grid = open(1);
    let sleep = function(&grid, "nap");
    let quick = submit(&grid, &sleep, &[Value::Float(0.0)], &[]);
    outcome(&quick);
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
    outcome(&waiting);
    assert_ne!(waiting.profile().pid, pid, "it ran on the dead worker");
}

#[test]
fn a_deadline_ends_the_call_and_its_worker() {
    let grid = open(1);
    let sleep = function(&grid, "nap");
    let mut payload = grid.payload();
    let mut bytes = Vec::new();
    encode_values(&[Value::Float(60.0)], Order::NATIVE, &mut bytes).unwrap();
    payload.add(&bytes).unwrap();
    let deadline = Some(Duration::from_millis(50));
    let start = Instant::now();
    let call = send(&grid, &sleep, payload.finish(), deadline);
    assert!(matches!(outcome(&call), Outcome::Ended(End::DeadlineExceeded(Some(0)))));
    assert!(start.elapsed() < Duration::from_secs(5));
    assert!(matches!(
        outcome(&submit(&grid, &sleep, &[Value::Float(0.0)], &[])),
        Outcome::Returned(..)
    ));
}

#[test]
fn what_a_worker_cannot_run_is_reported() {
    let grid = open(1);
    let path = module().clone().into_os_string().into_encoded_bytes();
    let gone = b"/nonexistent/module.so".to_vec();
    for (form, name, body, said) in [
        (FunctionForm::Named, "math/sqrt", Vec::new(), "FunctionNotFound"),
        (FunctionForm::Pickled, "math/sqrt", vec![1], "FunctionNotFound"),
        (FunctionForm::Library, "work/nonsense", path, "FunctionNotFound"),
        (FunctionForm::Library, "work/nap", gone, "ModuleError"),
    ] {
        let unknown = grid.register(name, form, body);
        match outcome(&submit(&grid, &unknown, &[], &[])) {
            Outcome::Raised { error, message, .. } => {
                assert_eq!(error, format!("gridrpc.{said}"));
                assert!(message.contains('`'), "{message}");
            }
            other => panic!("{other:?}"),
        }
    }
    let nap = function(&grid, "nap");
    for bad in [&[][..], &[Value::Text("long".into())], &[Value::None], &echoed(0)] {
        let call = submit(&grid, &nap, bad, &[]);
        assert!(matches!(outcome(&call), Outcome::Raised { .. }), "{bad:?}");
    }
}

#[test]
fn closing_ends_calls_and_workers() {
    let grid = open(3);
    let sleep = function(&grid, "nap");
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

/// Waiting callers take turns reading answers; a change of reader must not lose a wake-up.
#[test]
fn no_wake_up_is_lost_when_many_threads_wait() {
    let grid = open(3);
    let waiter = grid.waiter();
    let null = function(&grid, "null");
    let sleep = function(&grid, "nap");
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
                    // Half of them read answers themselves, the others are notified.
                    let ended =
                        if thread % 2 == 0 { waiter.wait(&call, WAIT) } else { call.wait(WAIT) };
                    assert!(ended, "thread {thread} waits forever in round {round}");
                    if thread == 0 && round % 500 == 0 {
                        // Long enough for the grid's own thread to take over.
                        std::thread::sleep(Duration::from_millis(5));
                    }
                }
            });
        }
    });
    assert_eq!(grid.counts().live, 0);
}

/// The memory of its worker into which a function has written.
fn output_of(call: &Call) -> Borrowed {
    let Outcome::Returned(sections, _) = outcome(call) else { panic!("it did not return") };
    let shared = sections.into_iter().find_map(|section| match section {
        Incoming::Shared(stretch) => Some(stretch),
        _ => None,
    });
    shared.expect("an output in shared memory")
}

fn filled(grid: &Grid, seconds: f64) -> Arc<Call> {
    let values = [Value::Float(seconds), Value::Int(2 << 20), Value::None];
    submit(grid, &function(grid, "fill"), &values, &[])
}

#[test]
fn memory_of_a_result_is_used_again_by_calls_that_were_sent_before_it_was_taken() {
    let grid = open(1);
    let calls: Vec<_> = (0..6).map(|_| filled(&grid, 0.2)).collect();
    let segments: Vec<_> = calls.iter().map(|call| output_of(call).lease().unwrap()).collect();
    // A function gets its memory when it starts; that of the previous result may not be back yet.
    let used: HashSet<u32> = segments.iter().map(|lease| lease.segment).collect();
    assert!(used.len() <= 2, "{segments:?}");
}

#[test]
fn memory_of_a_result_is_left_alone_while_somebody_reads_it() {
    let grid = open(1);
    let echo = function(&grid, "echo");
    let made = |byte: u8| {
        let call = submit(&grid, &echo, &echoed(2 << 20), &[&vec![byte; 2 << 20]]);
        output_of(&call)
    };
    let held: Vec<_> = (1..6).map(made).collect();
    // Occasionally release one in the middle of the others.
    drop(made(7));
    let more = made(8);
    for (stretch, byte) in held.iter().zip(1..).chain([(&more, 8)]) {
        assert!(stretch.bytes().iter().all(|one| *one == byte), "result {byte} has changed");
    }
}

#[test]
fn a_result_of_a_lost_worker_gives_nothing_back_to_the_next() {
    let grid = open(1);
    let first = filled(&grid, 0.0);
    let old = output_of(&first);
    let ended = filled(&grid, 60.0);
    std::thread::sleep(Duration::from_millis(100));
    // SAFETY: plain system call.
    unsafe { libc::kill(first.profile().pid as i32, libc::SIGKILL) };
    assert!(matches!(outcome(&ended), Outcome::Ended(End::WorkerLost(_))));
    let echo = function(&grid, "echo");
    let call = submit(&grid, &echo, &echoed(2 << 20), &[&vec![1; 2 << 20]]);
    let new = output_of(&call);
    assert_eq!(new.lease(), old.lease(), "segments of both processes have the same numbers");
    drop(old);
    let call = submit(&grid, &echo, &echoed(2 << 20), &[&vec![2; 2 << 20]]);
    let newer = output_of(&call);
    assert_ne!(newer.lease(), new.lease());
    assert!(new.bytes().iter().all(|byte| *byte == 1), "a result that is held has changed");
}
