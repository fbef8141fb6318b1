//! Workers that cannot be started: they are tried again after growing pauses, and then given up.

use gridrpc_core::{
    Action, Cause, Core, End, FunctionId, Loss, Refusal, Settings, Task, Time, WorkerId,
};

const MOST: u32 = 4;

struct Tried {
    core: Core<&'static str>,
    now: Time,
}

impl Tried {
    /// Workers that have been asked for.
    fn new(workers: u32) -> Tried {
        let settings = Settings { workers, max_failed_starts: MOST, ..Settings::default() };
        let mut core = Core::new(settings);
        assert_eq!(starts(|out| core.open(Time(0), out)).len(), workers as usize);
        Tried { core, now: Time(0) }
    }

    fn ready(&mut self, worker: u32) {
        self.core.worker_ready(self.now, WorkerId(worker), &mut Vec::new());
        self.core.check();
    }

    /// A worker is lost, or its start has failed. Returns what comes of it.
    fn lose(&mut self, worker: u32) -> Vec<Action<&'static str>> {
        let cause = Cause::Failed("its node is gone".into());
        let loss = Loss { worker, pid: 0, host: "here".into(), cause, stderr: String::new() };
        let mut out = Vec::new();
        self.core.worker_lost(self.now, WorkerId(worker), None, loss, &mut out);
        self.core.check();
        out
    }

    /// Lets time pass until the core is to be called. Returns how much, and what it then starts.
    fn pause(&mut self) -> (u64, Vec<WorkerId>) {
        let Tried { core, now } = self;
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
    let mut tried = Tried::new(2);
    tried.ready(0);
    tried.ready(1);
    // One that has worked is replaced at once.
    assert_eq!(tried.lose(1), [Action::Start(WorkerId(1))]);
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
    let told = tried.core.too_few(2).expect("one is given up").to_string();
    assert!(told.contains("worker 1") && told.contains("its node is gone"), "{told}");
    // The other one goes on.
    assert_eq!((tried.core.too_few(1), tried.core.broken()), (None, None));
    let mut out = Vec::new();
    tried.core.submit(tried.now, Task::new(FunctionId(0), "call"), &mut out).expect("taken");
    assert!(matches!(out[..], [Action::Teach { .. }, Action::Send { worker: WorkerId(0), .. }]));
}

#[test]
fn a_start_that_succeeds_makes_up_for_those_that_failed() {
    let mut tried = Tried::new(1);
    for _ in 0..3 {
        for _ in 1..MOST {
            tried.lose(0);
            assert_eq!(tried.pause().1, [WorkerId(0)]);
        }
        tried.ready(0);
        assert_eq!(tried.lose(0), [Action::Start(WorkerId(0))]);
    }
    assert_eq!(tried.core.too_few(1), None);
}

#[test]
fn a_grid_is_broken_when_all_are_given_up_and_not_before() {
    let mut tried = Tried::new(2);
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
    let mut tried = Tried::new(2);
    tried.ready(0);
    for _ in 1..MOST {
        tried.lose(1);
        tried.pause();
    }
    tried.lose(1);
    assert!(tried.core.too_few(2).is_some());
    assert_eq!(starts(|out| tried.core.add_workers(1, out)), [WorkerId(2)]);
    assert_eq!(tried.core.too_few(2), None);
    assert!(tried.core.too_few(3).is_some());
}
