//! Grids that shrink and grow, and calls that run longer than they may.

use std::time::Duration;

use gridrpc_core::{
    Action, CallId, Cause, Core, End, FunctionId, Loss, OccupiedTime, Settings, Task, Time,
    TimeLimit, WorkerId,
};

type Actions = Vec<Action<u32>>;

/// A grid whose workers are ready.
fn grid(workers: u32) -> Core<u32> {
    let mut core = Core::new(Settings { workers, cores: 4, ..Settings::default() });
    let mut out = Vec::new();
    core.open(Time(0), &mut out);
    for worker in 0..workers {
        core.worker_ready(Time(1), WorkerId(worker), &mut out);
    }
    core
}

fn resize(core: &mut Core<u32>, workers: u32) -> Actions {
    let mut out = Vec::new();
    core.set_workers(Time(100), workers, &mut out);
    core.check();
    out
}

fn submit(core: &mut Core<u32>, at: Time, payload: u32, limit: Option<Duration>) -> Actions {
    let mut out = Vec::new();
    let mut task = Task::new(FunctionId(0), payload);
    task.options.run_limit = limit;
    core.submit(at, task, &mut out).expect("taken");
    core.check();
    out
}

/// The worker and the number of each call sent.
fn sent(out: &Actions) -> Vec<(WorkerId, CallId)> {
    let of = |action: &Action<u32>| match action {
        Action::Send { worker, call, .. } => Some((*worker, *call)),
        _ => None,
    };
    out.iter().filter_map(of).collect()
}

fn dismissed(out: &Actions) -> Vec<WorkerId> {
    let of = |action: &Action<u32>| match action {
        Action::Dismiss(worker) => Some(*worker),
        _ => None,
    };
    out.iter().filter_map(of).collect()
}

fn ended(out: &Actions) -> Vec<(u32, End)> {
    let of = |action: &Action<u32>| match action {
        Action::End { payload, end, .. } => Some((*payload, end.clone())),
        _ => None,
    };
    out.iter().filter_map(of).collect()
}

fn answer(core: &mut Core<u32>, at: Time, worker: WorkerId, call: CallId, ran: u64) -> Actions {
    let mut out = Vec::new();
    core.replied(at, worker, call, OccupiedTime { ran, whole: ran }, &mut out)
        .expect("its next answer");
    core.check();
    out
}

fn lose(core: &mut Core<u32>, at: Time, worker: WorkerId) -> Actions {
    let mut out = Vec::new();
    let (host, stderr) = ("here".to_owned(), String::new());
    let loss = Loss { worker: worker.0, pid: 1, host, cause: Cause::Exit(0), stderr };
    core.worker_lost(at, worker, Some(0), loss, &mut out);
    core.check();
    out
}

fn tick(core: &mut Core<u32>, at: Time) -> Actions {
    let mut out = Vec::new();
    core.tick(at, &mut out);
    core.check();
    out
}

#[test]
fn idle_workers_end_first_and_busy_ones_after_their_calls() {
    let mut core = grid(3);
    let (worker, call) = sent(&submit(&mut core, Time(10), 0, None))[0];
    let out = resize(&mut core, 1);
    let gone = dismissed(&out);
    assert_eq!(gone.len(), 2);
    assert!(!gone.contains(&worker), "a worker with a call was dismissed before an idle one");
    assert_eq!((core.workers_here(), core.places(), core.ready()), (1, 1, 1));
    assert_eq!(dismissed(&resize(&mut core, 0)), [], "its call runs");
    assert_eq!((core.ready(), core.is_wanted(worker)), (0, false));
    assert_eq!(sent(&submit(&mut core, Time(20), 1, None)), [], "it gets no more calls");
    assert_eq!(dismissed(&answer(&mut core, Time(200), worker, call, 100)), [worker]);
    for worker in gone.into_iter().chain([worker]) {
        assert_eq!(lose(&mut core, Time(300), worker), [], "it is replaced");
    }
    assert_eq!(core.activities()[&None].workers, 0);
}

#[test]
fn calls_wait_while_there_is_no_worker() {
    let mut core = grid(1);
    assert_eq!(dismissed(&resize(&mut core, 0)), [WorkerId(0)]);
    assert_eq!(submit(&mut core, Time(200), 0, None), []);
    assert_eq!((core.queued(), core.broken()), (1, None));
    // Its old process is still there: the next one is started when that has ended.
    assert_eq!(resize(&mut core, 1), []);
    assert_eq!(lose(&mut core, Time(300), WorkerId(0)), [Action::Start(WorkerId(0))]);
    let mut out = Vec::new();
    core.worker_ready(Time(400), WorkerId(0), &mut out);
    assert_eq!(sent(&out).len(), 1);
}

#[test]
fn a_busy_worker_that_is_wanted_again_continues() {
    let mut core = grid(1);
    let (worker, call) = sent(&submit(&mut core, Time(10), 0, None))[0];
    resize(&mut core, 0);
    submit(&mut core, Time(20), 1, None);
    assert_eq!(resize(&mut core, 2), [Action::Start(WorkerId(1))]);
    let out = answer(&mut core, Time(200), worker, call, 100);
    assert_eq!((dismissed(&out), sent(&out).len()), (vec![], 1));
}

#[test]
fn calls_that_a_surplus_worker_has_not_begun_are_taken_back() {
    let mut core = grid(1);
    let mut now = Time(10);
    // The function is known to be short, so that calls are sent ahead.
    for payload in 0..20 {
        let (worker, call) = sent(&submit(&mut core, now, payload, None))[0];
        now = now + 1000;
        answer(&mut core, now, worker, call, 1000);
    }
    core.progressed(now, WorkerId(0), 20);
    for payload in 20..24 {
        assert_eq!(sent(&submit(&mut core, now, payload, None)).len(), 1, "not sent ahead");
    }
    let out = resize(&mut core, 0);
    assert_eq!(out, [Action::TakeBack { worker: WorkerId(0), head: None, below: 24 }]);
    let mut out = Vec::new();
    core.taken_back(now, WorkerId(0), 21, 24, &mut out);
    core.check();
    assert_eq!((core.queued(), sent(&out)), (3, vec![]));
}

#[test]
fn workers_that_cannot_start_are_removed_first() {
    let mut core = grid(2);
    let mut now = Time(1);
    // The process of worker 1 ends, and no other one starts in its place.
    for _ in 0..9 {
        lose(&mut core, now, WorkerId(1));
        now = now + 60_000_000_000;
        tick(&mut core, now);
    }
    assert!(core.too_few(2).is_some());
    assert_eq!(resize(&mut core, 1), []);
    assert_eq!((core.too_few(1), core.ready(), core.places()), (None, 1, 1));
    assert_eq!(resize(&mut core, 2), [Action::Start(WorkerId(1))], "it is tried again");
}

#[test]
fn a_call_that_runs_too_long_ends_and_so_does_its_worker() {
    let mut core = grid(1);
    let limit = Duration::from_millis(50);
    let (worker, call) = sent(&submit(&mut core, Time(10), 0, Some(limit)))[0];
    assert_eq!(tick(&mut core, Time(50_000_009)), []);
    let out = tick(&mut core, Time(50_000_010));
    assert_eq!(
        ended(&out),
        [(0, End::RunLimit(TimeLimit { worker: worker.0, limit, cpu: false }))]
    );
    assert!(out.contains(&Action::Cancel { worker, call }));
    let out = tick(&mut core, Time(10_000_000_000));
    assert!(out.contains(&Action::Kill(worker)), "{out:?}");
}

#[test]
fn time_in_the_queue_and_behind_other_calls_does_not_count() {
    let mut core = grid(1);
    let limit = Duration::from_micros(100);
    let mut now = Time(10);
    for payload in 0..20 {
        let (worker, call) = sent(&submit(&mut core, now, payload, None))[0];
        now = now + 1000;
        answer(&mut core, now, worker, call, 1000);
    }
    core.progressed(now, WorkerId(0), 20);
    let first = sent(&submit(&mut core, now, 20, None))[0].1;
    let second = sent(&submit(&mut core, now, 21, Some(limit)))[0].1;
    core.progressed(now, WorkerId(0), 21);
    // The first takes longer than the second may.
    now = now + 1_000_000;
    assert_eq!(ended(&tick(&mut core, now)), []);
    answer(&mut core, now, WorkerId(0), first, 1_000_000);
    assert_eq!(ended(&tick(&mut core, now + 99_999)), []);
    let out = tick(&mut core, now + 100_000);
    assert!(
        matches!(ended(&out)[..], [(21, End::RunLimit(TimeLimit { worker: 0, .. }))]),
        "{out:?}"
    );
    assert!(out.contains(&Action::Cancel { worker: WorkerId(0), call: second }));
}

#[test]
fn a_call_that_uses_too_much_processor_time_ends() {
    let mut core = grid(1);
    let limit = Duration::from_millis(250);
    let mut task = Task::new(FunctionId(0), 7);
    task.options.cpu_limit = Some(limit);
    let mut out = Vec::new();
    core.submit(Time(10), task, &mut out).expect("taken");
    let (worker, call) = sent(&out)[0];
    assert_eq!(out.last(), Some(&Action::MeasureCpu { worker, call }));
    let mut now = Time(10);
    let used = |core: &mut Core<u32>, ms: u64| {
        let mut out = Vec::new();
        core.cpu_used(Time(20), worker, call, 9_000_000_000 + ms * 1_000_000, &mut out);
        ended(&out)
    };
    // Earlier use of the process does not count.
    assert_eq!(used(&mut core, 0), []);
    for ms in [100, 249] {
        now = now + 100_000_000;
        assert_eq!(tick(&mut core, now), [Action::MeasureCpu { worker, call }]);
        assert_eq!(used(&mut core, ms), []);
    }
    now = now + 100_000_000;
    assert_eq!(tick(&mut core, now), [Action::MeasureCpu { worker, call }]);
    let reached = TimeLimit { worker: worker.0, limit, cpu: true };
    assert_eq!(used(&mut core, 250), [(7, End::RunLimit(reached))]);
    assert_eq!(
        reached.to_string(),
        "it used more processor time than its limit of 250ms on worker 0"
    );
}
