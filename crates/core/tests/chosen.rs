//! Defects that the simulations with random policies found, with a scripted policy.

use std::cell::Cell;
use std::rc::Rc;

use gridrpc_core::{
    Action, CallId, CallOptions, Cause, Claim, Core, FunctionId, Loss, OccupiedTime, Policy,
    Settings, Task, Time, View, WorkerId,
};

const F: FunctionId = FunctionId(0);
const W0: WorkerId = WorkerId(0);
const W1: WorkerId = WorkerId(1);
const GRACE: u64 = 1_000;

/// Chooses this worker if it can take the call; no worker: the call waits.
#[derive(Debug)]
struct Chosen {
    worker: Rc<Cell<Option<WorkerId>>>,
    /// How many workers were at work at the last choice.
    busy: Rc<Cell<usize>>,
}

impl Policy for Chosen {
    fn choose<T>(&mut self, view: &View<'_, T>, function: FunctionId) -> Option<WorkerId> {
        self.busy.set(view.busy());
        self.worker.get().filter(|id| view.can_take(*id, function))
    }

    fn may_wait(&self) -> usize {
        usize::MAX
    }
}

struct Grid {
    core: Core<u32, Chosen>,
    chosen: Rc<Cell<Option<WorkerId>>>,
    busy: Rc<Cell<usize>>,
    out: Vec<Action<u32>>,
}

impl Grid {
    /// Two workers, and a function that is known to be short.
    fn new() -> Grid {
        Grid::of(2)
    }

    fn of(workers: u32) -> Grid {
        let (chosen, busy) = (Rc::new(Cell::new(Some(W0))), Rc::default());
        let settings = Settings { workers, grace: GRACE, ..Settings::default() };
        let policy = Chosen { worker: Rc::clone(&chosen), busy: Rc::clone(&busy) };
        let core = Core::with_policy(settings, policy);
        let mut grid = Grid { core, chosen, busy, out: Vec::new() };
        grid.core.open(Time(0), &mut grid.out);
        let ids = (0..workers).map(WorkerId);
        ids.for_each(|id| grid.core.worker_ready(Time(0), id, &mut grid.out));
        let call = grid.submit();
        let took = OccupiedTime { ran: 1_000, whole: 1_000 };
        grid.core.replied(Time(1), W0, call, took, &mut grid.out).unwrap();
        grid.out.clear();
        grid
    }

    fn submit(&mut self) -> CallId {
        self.submit_multicore(1)
    }

    fn submit_multicore(&mut self, cores: u32) -> CallId {
        let task = Task {
            options: CallOptions { idempotent: true, cores, ..CallOptions::DEFAULT },
            ..Task::new(F, 0)
        };
        self.core.submit(Time(1), task, &mut self.out).unwrap()
    }

    fn sent(&self, call: CallId) -> Option<WorkerId> {
        self.out.iter().rev().find_map(|action| match action {
            Action::Send { worker, call: sent, .. } if *sent == call => Some(*worker),
            _ => None,
        })
    }
}

#[test]
fn a_call_that_a_worker_was_lost_with_is_not_run_by_the_one_that_waits_for_it() {
    let mut grid = Grid::new();
    let suspect = grid.submit();
    grid.chosen.set(Some(W1));
    let waits = grid.submit();
    let (host, stderr) = (String::new(), String::new());
    let loss = Loss { worker: 0, pid: 1, host, cause: Cause::Exit(1), stderr };
    grid.core.worker_lost(Time(2), W0, Some(2), loss, &mut grid.out);
    assert_eq!((grid.sent(waits), grid.sent(suspect)), (Some(W1), Some(W1)));
    let claim = grid.core.claim(Time(2), suspect, W1, &mut grid.out);
    assert!(matches!(claim, Claim::Wait));
    grid.core.taken_back(Time(3), W1, 1, 2, &mut grid.out);
    assert!(!grid.out.iter().any(|action| matches!(action, Action::Run { .. })));
    assert_eq!(grid.core.queued(), 1, "it is left to others");
    grid.core.check();
}

#[test]
fn a_worker_that_is_about_to_be_ended_gets_no_more_calls() {
    let mut grid = Grid::new();
    let overdue = grid.submit();
    grid.core.progressed(Time(1), W0, 2);
    grid.core.cancel(Time(1), overdue, &mut grid.out);
    grid.core.tick(Time(1 + GRACE), &mut grid.out);
    assert!(grid.out.iter().any(|action| matches!(action, Action::TakeBack { .. })));
    let innocent = grid.submit();
    assert_eq!(grid.sent(innocent), None);
}

#[test]
fn calls_that_have_waited_for_a_worker_are_given_to_others_when_it_is_ended() {
    let mut grid = Grid::new();
    let overdue = grid.submit();
    grid.chosen.set(None);
    let waits = grid.submit();
    assert_eq!(grid.sent(waits), None);
    grid.core.cancel(Time(1), overdue, &mut grid.out);
    grid.chosen.set(Some(W1));
    grid.core.tick(Time(1 + GRACE), &mut grid.out);
    assert!(grid.out.iter().any(|action| matches!(action, Action::Kill(W0))));
    assert_eq!(grid.sent(waits), Some(W1));
    grid.core.check();
}

#[test]
fn places_that_are_held_for_a_worker_that_is_ended_are_not_at_work() {
    let mut grid = Grid::of(3);
    let overdue = grid.submit_multicore(2);
    assert!(grid.sent(overdue).is_some());
    grid.chosen.set(None);
    let waits = grid.submit();
    assert_eq!(grid.busy.get(), 2);
    grid.core.cancel(Time(1), overdue, &mut grid.out);
    grid.core.tick(Time(1 + GRACE), &mut grid.out);
    assert!(grid.out.iter().any(|action| matches!(action, Action::Kill(_))));
    assert_eq!((grid.sent(waits), grid.busy.get()), (None, 0));
}

/// One worker is at work, two have nothing to do. A call waits by the policy's will, and a wide one behind it.
fn held_up() -> (Grid, CallId, CallId) {
    let mut grid = Grid::of(3);
    grid.submit();
    grid.chosen.set(None);
    let first = grid.submit();
    let multicore = grid.submit_multicore(2);
    assert_eq!((grid.sent(first), grid.sent(multicore)), (None, None));
    (grid, first, multicore)
}

#[test]
fn a_wide_call_is_sent_when_the_one_before_it_is_cancelled() {
    let (mut grid, first, multicore) = held_up();
    grid.core.cancel(Time(1), first, &mut grid.out);
    assert!(grid.sent(multicore).is_some());
    grid.core.check();
}

#[test]
fn a_wide_call_is_sent_when_the_one_before_it_is_withdrawn() {
    let (mut grid, first, multicore) = held_up();
    assert!(grid.core.withdraw(Time(1), first, &mut grid.out).is_some());
    assert!(grid.sent(multicore).is_some());
    grid.core.check();
}

#[test]
fn a_wide_call_is_sent_when_the_one_before_it_is_run_by_the_worker_that_waits_for_it() {
    let (mut grid, first, multicore) = held_up();
    let claim = grid.core.claim(Time(1), first, W0, &mut grid.out);
    assert!(matches!(claim, Claim::Run(_)));
    assert!(grid.sent(multicore).is_some());
    grid.core.check();
}
