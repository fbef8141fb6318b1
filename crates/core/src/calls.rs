//! The table of live calls and the queue of those that wait for a worker.

use std::collections::VecDeque;

use crate::ids::{CallId, WorkerId};
use crate::interface::Task;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Queued,
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
}

impl<T> Calls<T> {
    pub(crate) fn new() -> Self {
        Calls {
            slots: Vec::new(),
            free: Vec::new(),
            queue: VecDeque::new(),
            queued: 0,
            queued_bytes: 0,
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
        if call.place == Place::Queued {
            self.leave_queue(call.task.bytes);
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

    pub(crate) fn queued(&self) -> usize {
        self.queued
    }

    pub(crate) fn queued_bytes(&self) -> u64 {
        self.queued_bytes
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
