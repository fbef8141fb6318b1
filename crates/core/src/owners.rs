//! Owners of calls: their limits and their order.
//!
//! Owners share the workers by *start-time fair queueing*: each owner's usage is the time that its calls have
//! occupied workers, divided by its weight. Of the owners with queued calls, the one with the least usage goes first.
//! An owner that returns after a pause is not compensated for unused time. A call is charged its expected time when
//! it is sent, and the difference when it is answered.

use crate::ids::Owner;
use crate::interface::Refusal;

/// Minimum charge of a call, ns: calls of unknown functions alternate between owners.
const LEAST: u64 = 1_000;
/// Unit of usage, in fractions of a nanosecond, so that weights can divide it.
const PARTS: u128 = 1_000;

/// Limits of an owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// Share of the workers, relative to the weights of other owners whose calls wait; at least 1.
    pub weight: u32,
    /// Maximum number of running calls.
    pub running: usize,
    /// Maximum number of live calls.
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
    /// It has been removed. Its number may be reused when none of its calls runs any more.
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
    /// Usage of the owner whose call was sent last: the start value for owners that had no calls.
    level: u128,
}

impl Owners {
    pub(crate) fn new() -> Owners {
        Owners { all: vec![State::new(Quota::NONE)], level: 0 }
    }

    /// Adds an owner.
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

    /// Checks that the owner may submit another call.
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

    /// Records an accepted call of the owner.
    pub(crate) fn taken(&mut self, owner: Owner) {
        let level = self.level;
        let state = &mut self.all[owner.index()];
        if state.alive == 0 {
            state.usage = state.usage.max(level);
        }
        state.alive += 1;
    }

    /// Records an ended call of the owner.
    pub(crate) fn ended(&mut self, owner: Owner) {
        self.all[owner.index()].alive -= 1;
    }

    /// Records that a call of the owner has been sent, which is expected to occupy `places` for this time, ns.
    /// Returns its charge.
    pub(crate) fn sent(&mut self, owner: Owner, expected: u64, places: u32) -> u64 {
        let charged = expected.max(LEAST).saturating_mul(places.into());
        let state = &mut self.all[owner.index()];
        state.running += 1;
        self.level = self.level.max(state.usage);
        state.usage += u128::from(charged) * PARTS / u128::from(state.quota.weight.max(1));
        charged
    }

    /// Records that no worker holds the call any more.
    pub(crate) fn back(&mut self, owner: Owner) {
        self.all[owner.index()].running -= 1;
    }

    /// Settles the call that was charged `charged` and has occupied its places for `occupied` ns in total.
    pub(crate) fn settle(&mut self, owner: Owner, charged: u64, occupied: u64) {
        let state = &mut self.all[owner.index()];
        let share = |time: u64| u128::from(time) * PARTS / u128::from(state.quota.weight.max(1));
        state.usage = (state.usage + share(occupied)).saturating_sub(share(charged));
    }
}
