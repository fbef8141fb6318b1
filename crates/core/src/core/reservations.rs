//! Reserved workers: each serves one owner, such as a remote object, until it is released.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::calls::CallState;
use crate::core::Core;
use crate::end::{End, Loss};
use crate::ids::{CallId, GroupId, Reservation, Time, WorkerId};
use crate::interface::{Action, Refusal, ReservationState};
use crate::policy::Policy;
use crate::workers::{Phase, Reserved, SentCall, Worker};

impl<T: Clone, P: Policy> Core<T, P> {
    /// Reserves this many workers for one owner each, on a group if one is named.
    pub fn reserve(
        &mut self,
        count: u32,
        group: Option<GroupId>,
        out: &mut Vec<Action<T>>,
    ) -> Vec<Reservation> {
        (0..count).map(|_| self.reserve_one(group, out)).collect()
    }

    pub(crate) fn reserve_one(
        &mut self,
        group: Option<GroupId>,
        out: &mut Vec<Action<T>>,
    ) -> Reservation {
        self.tickets += 1;
        let ticket = self.tickets;
        let worker = self.free_places.pop().unwrap_or_else(|| {
            // It keeps state, and so its process.
            self.workers.push(Worker::new(u64::MAX));
            let id = WorkerId((self.workers.len() - 1) as u32);
            self.reserved_places.push(id);
            id
        });
        let home = self.next_home(group);
        let lost = group.and_then(|group| self.no_group(group)).map(|(_, loss)| loss);
        let is_lost = lost.is_some();
        let place = &mut self.workers[worker.index()];
        place.home = home;
        place.reserved = Some(Reserved { ticket, queue: VecDeque::new(), released: false, lost });
        if is_lost {
            return Reservation { worker, ticket };
        }
        if let Some(home) = home {
            self.wake(home, out);
        }
        if self.home_is_ready(worker) {
            self.start(worker, out);
        } else {
            // Its host reports when it is ready.
            self.workers[worker.index()].phase = Phase::Starting;
        }
        Reservation { worker, ticket }
    }

    /// State of a reserved worker.
    #[must_use]
    pub fn standing(&self, of: Reservation) -> ReservationState {
        let worker = &self.workers[of.worker.index()];
        match &worker.reserved {
            Some(reserved) if reserved.ticket == of.ticket && !reserved.released => {
                match &reserved.lost {
                    Some(loss) => ReservationState::Lost(Arc::clone(loss)),
                    None if worker.phase == Phase::Starting => ReservationState::Starting,
                    None => ReservationState::Ready,
                }
            }
            _ => ReservationState::Released,
        }
    }

    /// Releases a reserved worker. Its live calls are cancelled.
    pub fn release(&mut self, now: Time, of: Reservation, out: &mut Vec<Action<T>>) {
        let worker = &mut self.workers[of.worker.index()];
        let Some(reserved) = &mut worker.reserved else { return };
        if reserved.ticket != of.ticket || reserved.released {
            return;
        }
        reserved.released = true;
        let waiting = std::mem::take(&mut reserved.queue);
        let lost = reserved.lost.is_some();
        let sent: Vec<CallId> = worker.sent.iter().map(|sent| sent.call).collect();
        if lost {
            self.vacate(of.worker);
            return;
        }
        for call in waiting.into_iter().chain(sent) {
            self.end_early(now, call, End::Cancelled, out);
        }
        out.push(Action::Dismiss(of.worker));
    }

    /// Checks that a call may be submitted to this worker.
    pub(crate) fn check_reserved(&self, of: Reservation) -> Result<(), Refusal> {
        match self.standing(of) {
            ReservationState::Starting | ReservationState::Ready => Ok(()),
            ReservationState::Lost(loss) => Err(Refusal::ReservedLost(loss)),
            ReservationState::Released => Err(Refusal::Released),
        }
    }

    /// Queues a call for a reserved worker.
    pub(crate) fn line_up(&mut self, id: CallId, to: WorkerId) {
        let live = self.calls.all_waiting().0;
        if let Some(reserved) = &mut self.workers[to.index()].reserved {
            reserved.queue.push_back(id);
            // Bounds the number of ended ids behind a long call.
            if reserved.queue.len() > 2 * live + 1024 {
                reserved.queue.retain(|id| self.calls.get(*id).is_some());
            }
        }
    }

    /// Sends a reserved worker its next calls, until it is full.
    pub(crate) fn pump_reserved(&mut self, now: Time, id: WorkerId, out: &mut Vec<Action<T>>) {
        loop {
            let worker = &mut self.workers[id.index()];
            let Some(reserved) = &mut worker.reserved else { return };
            let Some(call) = reserved.queue.front().copied() else { return };
            let Some(known) = self.calls.get(call) else {
                reserved.queue.pop_front();
                continue;
            };
            if matches!(known.state, CallState::Blocked { .. }) {
                // Later calls must see its effects.
                return;
            }
            let function = known.task.function;
            let free = worker.phase == Phase::Ready && worker.sent.is_empty();
            if !free && !worker.has_room(self.pace.cost(function), now) {
                return;
            }
            if !self.home_is_ready(id) {
                // Its host has just gone, and this worker is lost next.
                return;
            }
            if let Some(reserved) = &mut self.workers[id.index()].reserved {
                reserved.queue.pop_front();
            }
            if self.calls.sent_from_own_queue(call, id) {
                self.send(now, call, id, out);
            }
        }
    }

    /// The process of a reserved worker is gone, together with its state.
    pub(crate) fn reserved_lost(
        &mut self,
        now: Time,
        id: WorkerId,
        sent: VecDeque<SentCall<T>>,
        loss: &Arc<Loss>,
        out: &mut Vec<Action<T>>,
    ) {
        let Some(reserved) = &mut self.workers[id.index()].reserved else { return };
        reserved.lost = Some(Arc::clone(loss));
        let released = reserved.released;
        let waiting = std::mem::take(&mut reserved.queue);
        for sent in sent {
            if sent.abandoned {
                out.push(Action::Forget(sent.payload));
            } else if !self.relief_lost(now, sent.call, loss, true, out) {
                self.end(now, sent.call, End::WorkerLost(Arc::clone(loss)), out);
            }
        }
        for call in waiting {
            if !self.relief_lost(now, call, loss, false, out) {
                self.end(now, call, End::WorkerLost(Arc::clone(loss)), out);
            }
        }
        if released {
            self.vacate(id);
        }
    }

    /// Frees the place for another reservation.
    pub(crate) fn vacate(&mut self, id: WorkerId) {
        self.free_places.push(id);
    }
}
