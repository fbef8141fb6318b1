//! What the simulations with random policies have found, by a policy that does as it is told.

use std::cell::Cell;
use std::rc::Rc;

use gridrpc_core::{
    Action, CallId, Cause, Claim, Core, FunctionId, Loss, Policy, Settings, Task, Time, Took, View,
    WorkerId,
};

const F: FunctionId = FunctionId(0);
const W0: WorkerId = WorkerId(0);
const W1: WorkerId = WorkerId(1);
const GRACE: u64 = 1_000;

/// Chooses this worker if it can take the call; no worker: the call waits.
#[derive(Debug)]
struct Chosen(Rc<Cell<Option<WorkerId>>>);

impl Policy for Chosen {
    fn choose<T>(&mut self, view: &View<'_, T>, function: FunctionId) -> Option<WorkerId> {
        self.0.get().filter(|id| view.can_take(*id, function))
    }

    fn may_wait(&self) -> usize {
        usize::MAX
    }
}

struct Grid {
    core: Core<u32, Chosen>,
    chosen: Rc<Cell<Option<WorkerId>>>,
    out: Vec<Action<u32>>,
}

impl Grid {
    /// Two workers, and a function that is known to be short.
    fn new() -> Grid {
        let chosen = Rc::new(Cell::new(Some(W0)));
        let settings = Settings { workers: 2, grace: GRACE, ..Settings::default() };
        let core = Core::with_policy(settings, Chosen(Rc::clone(&chosen)));
        let mut grid = Grid { core, chosen, out: Vec::new() };
        grid.core.open(Time(0), &mut grid.out);
        [W0, W1].iter().for_each(|id| grid.core.worker_ready(Time(0), *id, &mut grid.out));
        let call = grid.submit();
        let took = Took { ran: 1_000, whole: 1_000 };
        grid.core.replied(Time(1), W0, call, took, &mut grid.out).unwrap();
        grid.out.clear();
        grid
    }

    fn submit(&mut self) -> CallId {
        let task = Task { idempotent: true, ..Task::new(F, 0) };
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
