//! Owners of calls: what each may have at a time, and whose turn it is.
//!
//! Owners share the workers by *start-time fair queueing*: each owner's usage is the time that its calls have kept
//! workers, divided by its weight, and of the owners with calls in a queue the one with the least usage goes
//! first. An owner that comes back after a while does not make up for the time that it did not use. A call is
//! charged its expected time when it is sent, and the difference when it has answered.

use crate::ids::Owner;
use crate::interface::Refusal;

/// The least that a call is charged, ns: calls of functions that are not known yet alternate between owners.
const LEAST: u64 = 1_000;
/// Usage is counted in parts of a nanosecond, so that weights can divide it.
const PARTS: u128 = 1_000;

/// What an owner may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// Share of the workers, relative to the weights of other owners whose calls wait; at least 1.
    pub weight: u32,
    /// Number of calls that workers run at a time.
    pub running: usize,
    /// Number of calls that have not ended.
    pub alive: usize,
}

impl Quota {
    /// The quota of an owner without limits.
    pub const NONE: Quota = Quota { weight: 1, running: usize::MAX, alive: usize::MAX };
}

#[derive(Debug)]
struct State {
    quota: Quota,
    running: usize,
    alive: usize,
    usage: u128,
    /// It is gone: its number may be given to another owner when none of its calls runs any more.
    gone: bool,
}

impl State {
    fn new(quota: Quota) -> State {
        State { quota, running: 0, alive: 0, usage: 0, gone: false }
    }
}

/// All owners, by number.
#[derive(Debug)]
pub(crate) struct Owners {
    all: Vec<State>,
    /// Usage of the owner whose call was sent last: where those begin that had no calls.
    level: u128,
}

impl Owners {
    pub(crate) fn new() -> Owners {
        Owners { all: vec![State::new(Quota::NONE)], level: 0 }
    }

    /// There is another owner.
    pub(crate) fn add(&mut self, quota: Quota) -> Owner {
        let state = State::new(quota);
        let free = self.all.iter().position(|old| old.gone && old.running == 0 && old.alive == 0);
        let index = free.unwrap_or(self.all.len());
        match free {
            Some(index) => self.all[index] = state,
            None => self.all.push(state),
        }
        Owner(index as u32)
    }

    pub(crate) fn set_quota(&mut self, owner: Owner, quota: Quota) {
        self.all[owner.index()].quota = quota;
    }

    pub(crate) fn leave(&mut self, owner: Owner) {
        self.all[owner.index()].gone = true;
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether the owner may have another call.
    pub(crate) fn check(&self, owner: Owner) -> Result<(), Refusal> {
        match self.all.get(owner.index()) {
            Some(state) if state.gone => Err(Refusal::Closed),
            Some(state) if state.alive >= state.quota.alive => {
                Err(Refusal::Quota { alive: state.quota.alive })
            }
            Some(_) => Ok(()),
            None => Err(Refusal::Closed),
        }
    }

    /// Whether workers may run another call of the owner.
    pub(crate) fn may_run(&self, owner: Owner) -> bool {
        let state = &self.all[owner.index()];
        state.running < state.quota.running
    }

    pub(crate) fn usage(&self, owner: Owner) -> u128 {
        self.all[owner.index()].usage
    }

    pub(crate) fn alive(&self, owner: Owner) -> usize {
        self.all[owner.index()].alive
    }

    pub(crate) fn running(&self, owner: Owner) -> usize {
        self.all[owner.index()].running
    }

    /// A call of the owner was taken.
    pub(crate) fn taken(&mut self, owner: Owner) {
        let level = self.level;
        let state = &mut self.all[owner.index()];
        if state.alive == 0 {
            state.usage = state.usage.max(level);
        }
        state.alive += 1;
    }

    /// A call of the owner has ended.
    pub(crate) fn ended(&mut self, owner: Owner) {
        self.all[owner.index()].alive -= 1;
    }

    /// A worker was sent a call of the owner that is expected to keep so many places for so long, ns. Returns what
    /// it is charged.
    pub(crate) fn sent(&mut self, owner: Owner, expected: u64, places: u32) -> u64 {
        let charged = expected.max(LEAST).saturating_mul(places.into());
        let state = &mut self.all[owner.index()];
        state.running += 1;
        self.level = self.level.max(state.usage);
        state.usage += u128::from(charged) * PARTS / u128::from(state.quota.weight.max(1));
        charged
    }

    /// No worker has the call any more.
    pub(crate) fn back(&mut self, owner: Owner) {
        self.all[owner.index()].running -= 1;
    }

    /// The call that was charged `charged` has kept places for so long together, ns.
    pub(crate) fn settle(&mut self, owner: Owner, charged: u64, kept: u64) {
        let state = &mut self.all[owner.index()];
        let share = |time: u64| u128::from(time) * PARTS / u128::from(state.quota.weight.max(1));
        state.usage = (state.usage + share(kept)).saturating_sub(share(charged));
    }
}
