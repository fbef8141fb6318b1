//! Workers that cannot be started, or die before they have begun a call: they are tried again after
//! growing pauses. Those that never worked are given up soon, others only when there is little hope.

use gridrpc_core::{
    Action, Cause, Core, End, FunctionId, HostRetry, Loss, Refusal, Settings, Task, Time, WorkerId,
};

const MOST: u32 = 4;

struct Fixture {
    core: Core<&'static str>,
    now: Time,
}

impl Fixture {
    /// Workers that have been requested.
    fn new(workers: u32) -> Fixture {
        let settings = Settings { workers, max_failed_starts: MOST, ..Settings::default() };
        let mut core = Core::new(settings);
        assert_eq!(starts(|out| core.open(Time(0), out)).len(), workers as usize);
        Fixture { core, now: Time(0) }
    }

    fn ready(&mut self, worker: u32) {
        self.core.worker_ready(self.now, WorkerId(worker), &mut Vec::new());
        self.core.check();
    }

    /// A worker is lost, or its start has failed. Returns the outcome.
    fn lose(&mut self, worker: u32) -> Vec<Action<&'static str>> {
        self.lose_by(worker, None, Cause::Failed("its node is gone".into()))
    }

    /// It had begun so many calls, if that is known.
    fn lose_by(
        &mut self,
        worker: u32,
        begun: Option<u32>,
        cause: Cause,
    ) -> Vec<Action<&'static str>> {
        let loss = Loss { worker, pid: 0, host: "here".into(), cause, stderr: String::new() };
        let mut out = Vec::new();
        self.core.worker_lost(self.now, WorkerId(worker), begun, loss, &mut out);
        self.core.check();
        out
    }

    /// Lets time pass until the core is to be called. Returns the time, and the workers it then starts.
    fn pause(&mut self) -> (u64, Vec<WorkerId>) {
        let Fixture { core, now } = self;
        let next = core.next_tick().expect("something is to come");
        let pause = next.since(*now);
        *now = next;
        let started = starts(|out| core.tick(next, out));
        core.check();
        (pause, started)
    }
}

fn starts(step: impl FnOnce(&mut Vec<Action<&'static str>>)) -> Vec<WorkerId> {
    let mut out = Vec::new();
    step(&mut out);
    let start = |action| match action {
        Action::Start(worker) => Some(worker),
        _ => None,
    };
    out.into_iter().filter_map(start).collect()
}

#[test]
fn a_worker_is_tried_again_after_growing_pauses_and_then_given_up() {
    let mut tried = Fixture::new(2);
    tried.ready(0);
    let mut last = 0;
    for _ in 1..MOST {
        assert_eq!(tried.lose(1), [], "others still work, and there is a pause");
        assert_eq!(tried.core.too_few(2), None, "it may still come");
        let (pause, started) = tried.pause();
        assert_eq!(started, [WorkerId(1)]);
        assert!(pause >= 2 * last && pause > 0, "{pause} ns after {last} ns");
        last = pause;
    }
    assert_eq!(tried.lose(1), []);
    assert_eq!(tried.core.next_tick(), None, "it is not tried again");
    let error_text = tried.core.too_few(2).expect("one is given up").to_string();
    assert!(
        error_text.contains("worker 1") && error_text.contains("its node is gone"),
        "{error_text}"
    );
    // The other one continues.
    assert_eq!((tried.core.too_few(1), tried.core.broken()), (None, None));
    let mut out = Vec::new();
    tried.core.submit(tried.now, Task::new(FunctionId(0), "call"), &mut out).expect("taken");
    assert!(matches!(out[..], [Action::Teach { .. }, Action::Send { worker: WorkerId(0), .. }]));
}

#[test]
fn a_start_that_succeeds_makes_up_for_those_that_failed() {
    let mut tried = Fixture::new(1);
    for _ in 0..3 {
        for _ in 1..MOST {
            tried.lose(0);
            assert_eq!(tried.pause().1, [WorkerId(0)]);
        }
        tried.ready(0);
        assert_eq!(tried.lose_by(0, Some(1), EXIT), [Action::Start(WorkerId(0))]);
    }
    assert_eq!(tried.core.too_few(1), None);
}

const EXIT: Cause = Cause::Exit(1);

#[test]
fn a_worker_that_worked_once_is_tried_for_as_long_as_the_system_is_short_of_something() {
    let mut tried = Fixture::new(1);
    tried.ready(0);
    assert_eq!(tried.lose_by(0, Some(1), EXIT), [Action::Start(WorkerId(0))]);
    let mut last = 0;
    for _ in 0..100 {
        assert_eq!(tried.lose_by(0, None, Cause::Shortage("no more processes".into())), []);
        let (pause, started) = tried.pause();
        assert_eq!(started, [WorkerId(0)]);
        assert!(pause >= last && pause <= 30_000_000_000, "{pause} ns after {last} ns");
        last = pause;
    }
    assert_eq!((tried.core.broken(), tried.core.too_few(1)), (None, None));
    let mut out = Vec::new();
    tried.core.submit(tried.now, Task::new(FunctionId(0), "call"), &mut out).expect("taken");
    tried.core.worker_ready(tried.now, WorkerId(0), &mut out);
    assert!(matches!(out[..], [Action::Teach { .. }, Action::Send { .. }]), "{out:?}");
}

#[test]
fn a_worker_that_worked_once_is_given_up_when_it_fails_for_long_by_itself() {
    let mut tried = Fixture::new(1);
    tried.ready(0);
    tried.lose_by(0, Some(1), EXIT);
    let mut tries = 1;
    while tried.core.broken().is_none() {
        tried.lose(0);
        tries += 1;
        if tried.core.broken().is_none() {
            tried.pause();
        }
    }
    assert!(tries > MOST, "{tries} tries");
    assert!(tried.now > Time(10_000_000_000), "given up after {:?}", tried.now);
}

#[test]
fn a_call_that_no_worker_gets_to_begin_is_not_sent_for_ever() {
    let mut tried = Fixture::new(1);
    tried.ready(0);
    let mut out = Vec::new();
    for call in ["poison", "innocent"] {
        tried.core.submit(tried.now, Task::new(FunctionId(0), call), &mut out).expect("taken");
    }
    for _ in 1..MOST {
        let out = tried.lose_by(0, Some(0), EXIT);
        assert!(!out.iter().any(|action| matches!(action, Action::End { .. })), "{out:?}");
        if out.is_empty() {
            tried.pause();
        }
        tried.ready(0);
    }
    let out = tried.lose_by(0, Some(0), EXIT);
    let [Action::End { payload: "poison", end: End::WorkerLost(loss), .. }] = &out[..] else {
        panic!("{out:?}");
    };
    assert_eq!(loss.cause, EXIT);
    assert_eq!(tried.core.queued(), 1, "the other one waits for the next worker");
}

#[test]
fn workers_that_die_before_they_begin_a_call_are_replaced_after_growing_pauses() {
    let mut tried = Fixture::new(1);
    tried.ready(0);
    assert_eq!(tried.lose_by(0, Some(0), EXIT), [Action::Start(WorkerId(0))], "it may be chance");
    let mut last = 0;
    for _ in 0..20 {
        tried.ready(0);
        assert_eq!(tried.lose_by(0, Some(0), EXIT), []);
        let (pause, started) = tried.pause();
        assert_eq!(started, [WorkerId(0)]);
        assert!(pause >= last && pause > 0, "{pause} ns after {last} ns");
        last = pause;
    }
    tried.ready(0);
    assert_eq!(tried.lose_by(0, Some(1), EXIT), [Action::Start(WorkerId(0))], "it was of use");
}

#[test]
fn a_grid_is_broken_when_all_are_given_up_and_not_before() {
    let mut tried = Fixture::new(2);
    tried.core.submit(Time(0), Task::new(FunctionId(0), "call"), &mut Vec::new()).expect("taken");
    for _ in 1..MOST {
        tried.lose(0);
        assert_eq!(tried.pause().1, [WorkerId(0)]);
    }
    // Worker 1 has failed once, and waits for its next try, when worker 0 is given up.
    assert_eq!(tried.lose(1), []);
    assert_eq!(tried.lose(0), []);
    assert_eq!(tried.core.broken(), None, "worker 1 is still to be tried");
    assert_eq!(tried.core.too_few(2), None, "and there may be none then");
    for _ in 2..MOST {
        assert_eq!(tried.pause().1, [WorkerId(1)]);
        assert_eq!(tried.lose(1), []);
    }
    assert_eq!(tried.pause().1, [WorkerId(1)]);
    let out = tried.lose(1);
    let [Action::End { payload: "call", end: End::NoWorkers(loss), .. }] = &out[..] else {
        panic!("{out:?}");
    };
    assert_eq!((loss.worker, tried.core.broken()), (1, Some(loss)));
    let refused = tried.core.submit(tried.now, Task::new(FunctionId(0), "late"), &mut Vec::new());
    assert!(matches!(refused, Err(Refusal::NoWorkers(_))));
}

#[test]
fn more_workers_make_up_for_those_given_up() {
    let mut tried = Fixture::new(2);
    tried.ready(0);
    for _ in 1..MOST {
        tried.lose(1);
        tried.pause();
    }
    tried.lose(1);
    assert!(tried.core.too_few(2).is_some());
    assert_eq!(starts(|out| tried.core.set_workers(Time(0), 3, out)), [WorkerId(2)]);
    assert_eq!(tried.core.too_few(2), None);
    assert!(tried.core.too_few(3).is_some());
}

#[test]
fn a_host_that_worked_once_is_given_up_when_it_stays_away_for_its_time() {
    const SECOND: u64 = 1_000_000_000;
    for (timeout, returns) in [(0, false), (1, false), (7, false), (7, true), (100, true)] {
        let settings = Settings { workers: 0, hosts: vec![1], ..Settings::default() };
        let mut tried = Fixture { core: Core::new(settings), now: Time(5) };
        tried.core.open(tried.now, &mut Vec::new());
        let retry = HostRetry { timeout: timeout * SECOND, ..HostRetry::STARTED };
        tried.core.set_retry(WorkerId(0), retry);
        let join = |tried: &mut Fixture| {
            tried.core.host_joined(WorkerId(0), 1, &mut Vec::new());
            tried.core.host_has(tried.now, WorkerId(0), 1, 1, &mut Vec::new());
        };
        join(&mut tried);
        let mut away = tried.now;
        assert_eq!(tried.lose(0), [Action::Start(WorkerId(0))]);
        if returns {
            assert_eq!(tried.lose(0), []);
            assert_eq!(tried.pause().1, [WorkerId(0)]);
            // Its time begins again.
            join(&mut tried);
            away = tried.now;
            assert_eq!(tried.lose(0), [], "it has run no call");
            assert_eq!(tried.pause().1, [WorkerId(0)]);
        }
        let task = Task::new(FunctionId(0), "call");
        tried.core.submit(tried.now, task, &mut Vec::new()).expect("it may come back");
        let mut ended = tried.lose(0);
        while tried.core.broken().is_none() {
            assert_eq!(ended, []);
            tried.pause();
            ended = tried.lose(0);
        }
        assert_eq!(tried.now.since(away), timeout * SECOND, "the last try is when its time ends");
        let [Action::End { payload: "call", end: End::NoWorkers(_), .. }] = &ended[..] else {
            panic!("{ended:?}");
        };
    }
}

#[test]
fn a_host_that_only_has_to_be_connected_to_is_tried_sooner() {
    const MS: u64 = 1_000_000;
    for (retry, pauses) in [
        (HostRetry::CONNECTED, [50, 100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000]),
        (HostRetry::STARTED, [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000, 30_000]),
    ] {
        let settings = Settings { workers: 0, hosts: vec![1], ..Settings::default() };
        let mut tried = Fixture { core: Core::new(settings), now: Time(5) };
        tried.core.open(tried.now, &mut Vec::new());
        tried.core.set_retry(WorkerId(0), retry);
        tried.core.host_joined(WorkerId(0), 1, &mut Vec::new());
        tried.core.host_has(tried.now, WorkerId(0), 1, 1, &mut Vec::new());
        assert_eq!(tried.lose(0), [Action::Start(WorkerId(0))], "at once");
        for pause in pauses {
            assert_eq!(tried.lose(0), []);
            assert_eq!(tried.pause(), (pause * MS, vec![WorkerId(0)]));
        }
    }
}
