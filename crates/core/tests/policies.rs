//! Policies that are nothing like the one of all grids: the state machine has to get along with any.

use gridrpc_core::{FunctionId, Policy, View, WorkerId};

/// One executor after the other, by number, whoever can take the call; nobody continues with the next.
#[derive(Debug, Default)]
pub struct RoundRobin {
    last: usize,
}

fn all<T>(view: &View<'_, T>) -> impl Iterator<Item = WorkerId> + use<T> {
    (0..view.executors() as u32).map(WorkerId)
}

impl Policy for RoundRobin {
    fn choose<T>(&mut self, view: &View<'_, T>, function: FunctionId) -> Option<WorkerId> {
        let last = self.last as u32;
        let behind = all(view).filter(|id| id.0 > last);
        let mut in_turn = behind.chain(all(view).filter(|id| id.0 <= last));
        let chosen = in_turn.find(|id| view.can_take(*id, function))?;
        self.last = chosen.0 as usize;
        Some(chosen)
    }

    fn goes_on<T>(&mut self, _: &View<'_, T>, _: WorkerId, _: FunctionId) -> bool {
        false
    }
}

/// Anybody who can take the call, or nobody while that is allowed.
#[derive(Debug)]
pub struct RandomPolicy {
    rng: fastrand::Rng,
}

/// Calls that it has wait at most.
const WAITING: usize = 3;

impl RandomPolicy {
    pub fn new(seed: u64) -> RandomPolicy {
        RandomPolicy { rng: fastrand::Rng::with_seed(seed) }
    }
}

impl Policy for RandomPolicy {
    fn choose<T>(&mut self, view: &View<'_, T>, function: FunctionId) -> Option<WorkerId> {
        if view.busy() > 0 && view.queued() <= WAITING && self.rng.bool() {
            return None;
        }
        let can: Vec<WorkerId> = all(view).filter(|id| view.can_take(*id, function)).collect();
        self.rng.choice(can)
    }

    fn goes_on<T>(&mut self, _: &View<'_, T>, _: WorkerId, _: FunctionId) -> bool {
        self.rng.bool()
    }

    fn may_wait(&self) -> usize {
        WAITING
    }
}
