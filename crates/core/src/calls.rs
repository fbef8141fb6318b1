//! The table of live calls and the queue of those that wait for a worker.

use std::collections::VecDeque;

use crate::ids::{CallId, WorkerId};
use crate::interface::Task;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// In the queue for all workers.
    Queued,
    /// In the queue of a reserved worker.
    Waiting(WorkerId),
    Sent(WorkerId),
}

#[derive(Debug)]
pub(crate) struct Call<T> {
    pub(crate) task: Task<T>,
    pub(crate) place: Place,
    /// Workers that were lost while they ran it.
    pub(crate) losses: u32,
}

#[derive(Debug)]
struct Slot<T> {
    generation: u32,
    call: Option<Call<T>>,
}

/// Live calls by id. A slot is used again with the next generation, so an old id finds nothing.
#[derive(Debug)]
pub(crate) struct Calls<T> {
    slots: Vec<Slot<T>>,
    free: Vec<u32>,
    queue: VecDeque<CallId>,
    /// Calls in the queue that are alive; the queue may hold ids of ended ones.
    queued: usize,
    queued_bytes: u64,
    /// Calls that wait for one worker, in its own queue.
    waiting: usize,
    waiting_bytes: u64,
}

impl<T> Calls<T> {
    pub(crate) fn new() -> Self {
        Calls {
            slots: Vec::new(),
            free: Vec::new(),
            queue: VecDeque::new(),
            queued: 0,
            queued_bytes: 0,
            waiting: 0,
            waiting_bytes: 0,
        }
    }

    /// Adds a call. It is in no queue yet.
    pub(crate) fn insert(&mut self, task: Task<T>) -> CallId {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot { generation: 0, call: None });
            (self.slots.len() - 1) as u32
        });
        let slot = &mut self.slots[index as usize];
        slot.call = Some(Call { task, place: Place::Queued, losses: 0 });
        CallId::new(index, slot.generation)
    }

    pub(crate) fn get(&self, id: CallId) -> Option<&Call<T>> {
        let slot = self.slots.get(id.index())?;
        if slot.generation == id.generation() { slot.call.as_ref() } else { None }
    }

    pub(crate) fn get_mut(&mut self, id: CallId) -> Option<&mut Call<T>> {
        let slot = self.slots.get_mut(id.index())?;
        if slot.generation == id.generation() { slot.call.as_mut() } else { None }
    }

    /// Takes a call out; its id means nothing from here on.
    pub(crate) fn remove(&mut self, id: CallId) -> Option<Call<T>> {
        self.get(id)?;
        let slot = &mut self.slots[id.index()];
        let call = slot.call.take()?;
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(id.index() as u32);
        match call.place {
            Place::Queued => self.leave_queue(call.task.bytes),
            Place::Waiting(_) => self.leave_own_queue(call.task.bytes),
            Place::Sent(_) => {}
        }
        Some(call)
    }

    pub(crate) fn push_back(&mut self, id: CallId) {
        if let Some(bytes) = self.enter_queue(id) {
            self.queue.push_back(id);
            self.queued_bytes += bytes;
        }
    }

    pub(crate) fn push_front(&mut self, id: CallId) {
        if let Some(bytes) = self.enter_queue(id) {
            self.queue.push_front(id);
            self.queued_bytes += bytes;
        }
    }

    fn enter_queue(&mut self, id: CallId) -> Option<u64> {
        let call = self.get_mut(id)?;
        call.place = Place::Queued;
        let bytes = call.task.bytes;
        self.queued += 1;
        Some(bytes)
    }

    fn leave_queue(&mut self, bytes: u64) {
        self.queued -= 1;
        self.queued_bytes -= bytes;
        // Ids of ended calls must not pile up behind a live one at the front.
        if self.queue.len() > 2 * self.queued + 1024 {
            let mut queue = std::mem::take(&mut self.queue);
            queue.retain(|id| self.get(*id).is_some_and(|call| call.place == Place::Queued));
            self.queue = queue;
        }
    }

    /// The call that has waited longest.
    pub(crate) fn front(&mut self) -> Option<CallId> {
        while let Some(id) = self.queue.front() {
            if self.get(*id).is_some_and(|call| call.place == Place::Queued) {
                return Some(*id);
            }
            self.queue.pop_front();
        }
        None
    }

    /// Takes the call at the front out of the queue: it has been sent.
    pub(crate) fn pop_sent(&mut self, worker: WorkerId) {
        let Some(id) = self.front() else { return };
        self.queue.pop_front();
        if let Some(call) = self.get_mut(id) {
            call.place = Place::Sent(worker);
            let bytes = call.task.bytes;
            self.leave_queue(bytes);
        }
    }

    /// The call waits for this worker alone, which keeps the queue.
    pub(crate) fn wait_for(&mut self, id: CallId, worker: WorkerId) {
        if let Some(call) = self.get_mut(id) {
            call.place = Place::Waiting(worker);
            let bytes = call.task.bytes;
            self.waiting += 1;
            self.waiting_bytes += bytes;
        }
    }

    /// A call has been taken from its worker's own queue and sent. `false`: it had ended before.
    pub(crate) fn sent_from_own_queue(&mut self, id: CallId, worker: WorkerId) -> bool {
        let Some(call) = self.get_mut(id) else { return false };
        if call.place != Place::Waiting(worker) {
            return false;
        }
        call.place = Place::Sent(worker);
        let bytes = call.task.bytes;
        self.leave_own_queue(bytes);
        true
    }

    fn leave_own_queue(&mut self, bytes: u64) {
        self.waiting -= 1;
        self.waiting_bytes -= bytes;
    }

    /// Calls that wait for a worker, in whichever queue, and their bytes.
    pub(crate) fn all_waiting(&self) -> (usize, u64) {
        (self.queued + self.waiting, self.queued_bytes + self.waiting_bytes)
    }

    pub(crate) fn queued(&self) -> usize {
        self.queued
    }

    pub(crate) fn live(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (CallId, &Call<T>)> {
        self.slots.iter().enumerate().filter_map(|(index, slot)| {
            Some((CallId::new(index as u32, slot.generation), slot.call.as_ref()?))
        })
    }

    pub(crate) fn queue_len(&self) -> usize {
        self.queue.len()
    }
}
