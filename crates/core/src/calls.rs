//! Table of live calls, and the queues of calls that wait for a worker.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::ids::{CallId, GroupId, Owner, WorkerId};
use crate::interface::Task;
use crate::owners::Owners;
use crate::queue::{Entry, Order, Place, Queue};
use crate::resource_request::ResourceRequest;

/// Position of a call on its way to a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallState {
    /// In no queue for workers: this many other calls have to end first, and then its arguments are assembled. A call
    /// for a reserved worker still has its place in that worker's queue.
    Blocked {
        waits_for: u32,
    },
    /// In the queue for all workers, or in that of its group.
    Queued,
    /// In the queue of wide calls, of its group or of all.
    QueuedWide,
    /// In the queue of a reserved worker, or of the host that holds its arguments.
    Waiting(WorkerId),
    Sent(WorkerId),
}

/// Arguments of a call that are on a host.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LocalArguments {
    pub(crate) host: WorkerId,
    pub(crate) bytes: u64,
}

#[derive(Debug)]
pub(crate) struct Call<T> {
    pub(crate) task: Task<T>,
    pub(crate) state: CallState,
    /// Number of workers lost while they ran it.
    pub(crate) losses: u32,
    /// Number of workers lost just before they would have begun it.
    pub(crate) false_starts: u32,
    /// Where some of its arguments are. With these arguments it can run nowhere else.
    pub(crate) near: Option<LocalArguments>,
    /// Submission number.
    pub(crate) serial: u64,
}

#[derive(Debug)]
struct Slot<T> {
    generation: u32,
    call: Option<Call<T>>,
}

/// The calls of one owner that wait for one group, or for any worker: a queue, which may hold ids of ended calls, and
/// the number of its live calls.
#[derive(Debug, Default)]
struct OwnerQueue {
    queue: Queue,
    live: usize,
    /// Wide calls by resource request; all of them are alive.
    multicore: BTreeMap<ResourceRequest, BTreeMap<Place, CallId>>,
    /// Their requests, by the place of the first call with each request. There may be as many requests as calls.
    fronts: BTreeMap<Place, ResourceRequest>,
}

impl OwnerQueue {
    fn insert_multicore(&mut self, request: ResourceRequest, order: Place, id: CallId) {
        let alike = self.multicore.entry(request.clone()).or_default();
        let front = alike.keys().next().copied();
        alike.insert(order, id);
        if front.is_none_or(|front| order < front) {
            if let Some(front) = front {
                self.fronts.remove(&front);
            }
            self.fronts.insert(order, request);
        }
    }

    fn remove_wide(&mut self, request: &ResourceRequest, order: Place) {
        let Some(alike) = self.multicore.get_mut(request) else { return };
        alike.remove(&order);
        let next = alike.keys().next().copied();
        if next.is_none() {
            self.multicore.remove(request);
        }
        if let Some(request) = self.fronts.remove(&order)
            && let Some(next) = next
        {
            self.fronts.insert(next, request);
        }
    }
}

fn at(group: Option<GroupId>) -> usize {
    group.map_or(0, |group| group.index() + 1)
}

/// The place of a call among those of its owner.
fn place<T>(call: &Call<T>) -> Place {
    (Reverse(call.task.options.priority), call.serial)
}

/// Live calls by id. A slot is reused with the next generation, so an old id finds nothing.
#[derive(Debug)]
pub(crate) struct Calls<T> {
    slots: Vec<Slot<T>>,
    free: Vec<u32>,
    pub(crate) owners: Owners,
    /// Lines by owner: first those for any worker, then those of each group.
    lines: Vec<Vec<OwnerQueue>>,
    /// Owners with calls in each line, and the number of these calls.
    with_calls: Vec<Vec<Owner>>,
    queued: Vec<usize>,
    /// Host groups that calls wait for, and the number of these calls.
    waited_for: Vec<GroupId>,
    bound: usize,
    submitted: u64,
    queued_bytes: u64,
    /// Wide calls in all lines.
    multicore: usize,
    wide_bytes: u64,
    /// Calls that wait for one worker, in its own queue.
    waiting: usize,
    waiting_bytes: u64,
    /// Calls that wait for other calls to end.
    blocked: usize,
    blocked_bytes: u64,
}

impl<T> Calls<T> {
    pub(crate) fn new() -> Self {
        Calls {
            slots: Vec::new(),
            free: Vec::new(),
            owners: Owners::new(),
            lines: vec![vec![OwnerQueue::default()], vec![OwnerQueue::default()]],
            with_calls: vec![Vec::new(), Vec::new()],
            queued: vec![0, 0],
            waited_for: Vec::new(),
            bound: 0,
            submitted: 0,
            queued_bytes: 0,
            multicore: 0,
            wide_bytes: 0,
            waiting: 0,
            waiting_bytes: 0,
            blocked: 0,
            blocked_bytes: 0,
        }
    }

    /// Adds a group that calls may be bound to.
    pub(crate) fn add_group(&mut self) {
        self.lines.push((0..self.owners.len()).map(|_| OwnerQueue::default()).collect());
        self.with_calls.push(Vec::new());
        self.queued.push(0);
    }

    /// Ensures that each owner has lines.
    pub(crate) fn add_owner(&mut self) {
        for lines in &mut self.lines {
            lines.resize_with(self.owners.len(), OwnerQueue::default);
        }
    }

    fn line(&mut self, owner: Owner, group: Option<GroupId>) -> &mut OwnerQueue {
        &mut self.lines[at(group)][owner.index()]
    }

    /// Adds a call. It is in no queue yet.
    pub(crate) fn insert(&mut self, task: Task<T>) -> CallId {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot { generation: 0, call: None });
            (self.slots.len() - 1) as u32
        });
        let slot = &mut self.slots[index as usize];
        self.submitted += 1;
        let serial = self.submitted;
        self.owners.taken(task.owner);
        let state = CallState::Queued;
        slot.call = Some(Call { task, state, losses: 0, false_starts: 0, near: None, serial });
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

    /// Removes a call; its id becomes invalid.
    pub(crate) fn remove(&mut self, id: CallId) -> Option<Call<T>> {
        self.get(id)?;
        let slot = &mut self.slots[id.index()];
        let call = slot.call.take()?;
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(id.index() as u32);
        self.leave(&call);
        self.owners.ended(call.task.owner);
        Some(call)
    }

    /// Removes a call from its place; the caller gives it another one at once.
    pub(crate) fn leave_place(&mut self, id: CallId) {
        if self.get(id).is_none() {
            return;
        }
        let Some(call) = self.slots[id.index()].call.take() else { return };
        self.leave(&call);
        self.slots[id.index()].call = Some(call);
    }

    fn leave(&mut self, call: &Call<T>) {
        let (owner, group, bytes) = (call.task.owner, call.task.options.group, call.task.bytes);
        match call.state {
            CallState::Queued => self.leave_queue(owner, group, bytes),
            CallState::QueuedWide => {
                self.line(owner, group).remove_wide(&ResourceRequest::of(&call.task), place(call));
                self.multicore -= 1;
                self.wide_bytes -= bytes;
            }
            CallState::Waiting(_) => self.leave_own_queue(bytes),
            CallState::Blocked { .. } => self.leave_blocked(bytes),
            CallState::Sent(_) => {}
        }
    }

    /// Puts a call into its place in the queue for all workers or of its group.
    pub(crate) fn enqueue(&mut self, id: CallId) {
        let Some(call) = self.get_mut(id) else { return };
        if call.task.options.is_multicore() {
            return self.enqueue_wide(id);
        }
        call.state = CallState::Queued;
        let (bytes, priority, serial) = (call.task.bytes, call.task.options.priority, call.serial);
        let (owner, group) = (call.task.owner, call.task.options.group);
        self.queued_bytes += bytes;
        let line = self.line(owner, group);
        line.live += 1;
        line.queue.insert(priority, Entry { serial, id });
        if line.live == 1 {
            self.with_calls[at(group)].push(owner);
        }
        self.queued[at(group)] += 1;
        if let Some(group) = group {
            self.bound += 1;
            if self.queued[at(Some(group))] == 1 {
                self.waited_for.push(group);
            }
        }
    }

    fn enqueue_wide(&mut self, id: CallId) {
        let Some(call) = self.get_mut(id) else { return };
        call.state = CallState::QueuedWide;
        let (place, request, bytes) =
            (place(call), ResourceRequest::of(&call.task), call.task.bytes);
        let owner = call.task.owner;
        self.line(owner, request.group).insert_multicore(request, place, id);
        self.multicore += 1;
        self.wide_bytes += bytes;
    }

    /// Number of waiting wide calls.
    pub(crate) fn multicore(&self) -> usize {
        self.multicore
    }

    /// Checks that the first call of each distinct request is known.
    pub(crate) fn check_fronts(&self) {
        for waiting in self.lines.iter().flatten() {
            let firsts = waiting.multicore.iter().filter_map(|(request, alike)| {
                alike.keys().next().map(|order| (*order, request.clone()))
            });
            assert_eq!(waiting.fronts, firsts.collect::<BTreeMap<_, _>>());
            assert_eq!(waiting.fronts.len(), waiting.multicore.len());
        }
    }

    /// Resource requests of the calls that wait for a group, and the number of calls with each request, for each
    /// owner.
    pub(crate) fn requests(
        &self,
        group: Option<GroupId>,
    ) -> impl Iterator<Item = (&ResourceRequest, usize)> {
        let multicore = self.lines[at(group)].iter().flat_map(|line| &line.multicore);
        multicore.map(|(request, alike)| (request, alike.len()))
    }

    /// The first `most` of these calls in the order of sending, and at most `alike` with the same request. Skips
    /// owners at their limit of running calls.
    pub(crate) fn first_multicore(&self, most: usize, alike: usize) -> Vec<(Order, CallId)> {
        let mut first: Vec<(Order, CallId)> = Vec::new();
        for (index, line) in self.lines.iter().flat_map(|lines| lines.iter().enumerate()) {
            let owner = Owner(index as u32);
            if line.multicore.is_empty() || !self.owners.may_run(owner) {
                continue;
            }
            let usage = self.owners.usage(owner);
            let requests = line.fronts.values().take(most);
            let calls = requests.filter_map(|request| line.multicore.get(request));
            let calls = calls.flat_map(|calls| calls.iter().take(alike));
            first.extend(calls.map(|(place, id)| ((usage, *place), *id)));
        }
        first.sort_unstable();
        first.truncate(most);
        first
    }

    /// Records that a wide call has been sent.
    pub(crate) fn sent_wide(&mut self, id: CallId, worker: WorkerId) {
        self.leave_place(id);
        if let Some(call) = self.get_mut(id) {
            call.state = CallState::Sent(worker);
        }
    }

    fn leave_queue(&mut self, owner: Owner, group: Option<GroupId>, bytes: u64) {
        self.queued_bytes -= bytes;
        let line = self.line(owner, group);
        line.live -= 1;
        let live = line.live;
        // Bounds the number of ended ids behind a live call at the front.
        if line.queue.len() > 2 * live + 1024 {
            let mut queue = std::mem::take(&mut line.queue);
            queue.retain(|id| self.get(id).is_some_and(|call| call.state == CallState::Queued));
            self.line(owner, group).queue = queue;
        }
        if live == 0 {
            self.with_calls[at(group)].retain(|other| *other != owner);
        }
        self.queued[at(group)] -= 1;
        if let Some(group) = group {
            self.bound -= 1;
            if self.queued[at(Some(group))] == 0 {
                self.waited_for.retain(|other| *other != group);
            }
        }
    }

    /// The next call of an owner in its line, and its place there.
    fn front_of(&mut self, owner: Owner, group: Option<GroupId>) -> Option<(Place, CallId)> {
        while let Some((place, id)) = self.line(owner, group).queue.front_in_order() {
            if self.get(id).is_some_and(|call| call.state == CallState::Queued) {
                return Some((place, id));
            }
            self.line(owner, group).queue.pop_front();
        }
        None
    }

    /// The next call among those that wait for a group, or for any worker, of owners below their limit, and its place
    /// among the calls of all owners.
    pub(crate) fn front(&mut self, group: Option<GroupId>) -> Option<(Order, CallId)> {
        let mut first = None;
        for index in 0..self.with_calls[at(group)].len() {
            let owner = self.with_calls[at(group)][index];
            if !self.owners.may_run(owner) {
                continue;
            }
            let Some((place, id)) = self.front_of(owner, group) else { continue };
            let next = ((self.owners.usage(owner), place), id);
            if first.is_none_or(|first| next < first) {
                first = Some(next);
            }
        }
        first
    }

    /// The place of a call among those of all owners.
    pub(crate) fn order(&self, id: CallId) -> Option<Order> {
        let call = self.get(id)?;
        Some((self.owners.usage(call.task.owner), place(call)))
    }

    /// Removes the call at the front of its line: it has been sent.
    pub(crate) fn pop_sent(&mut self, group: Option<GroupId>, worker: WorkerId) {
        let Some((_, id)) = self.front(group) else { return };
        if let Some(call) = self.get_mut(id) {
            call.state = CallState::Sent(worker);
            let (owner, bytes) = (call.task.owner, call.task.bytes);
            self.line(owner, group).queue.pop_front();
            self.leave_queue(owner, group, bytes);
        }
    }

    /// Number of calls that wait for the group that they are bound to.
    pub(crate) fn bound(&self) -> usize {
        self.bound
    }

    /// Host groups that calls wait for.
    pub(crate) fn waited_for(&self) -> Vec<GroupId> {
        self.waited_for.clone()
    }

    /// Makes the call wait for this worker alone, which keeps the queue.
    pub(crate) fn wait_for(&mut self, id: CallId, worker: WorkerId) {
        if let Some(call) = self.get_mut(id) {
            call.state = CallState::Waiting(worker);
            let bytes = call.task.bytes;
            self.waiting += 1;
            self.waiting_bytes += bytes;
        }
    }

    /// Records that a call has been taken from its worker's own queue and sent. Returns `false` if it had ended
    /// before.
    pub(crate) fn sent_from_own_queue(&mut self, id: CallId, worker: WorkerId) -> bool {
        let Some(call) = self.get_mut(id) else { return false };
        if call.state != CallState::Waiting(worker) {
            return false;
        }
        call.state = CallState::Sent(worker);
        let bytes = call.task.bytes;
        self.leave_own_queue(bytes);
        true
    }

    fn leave_own_queue(&mut self, bytes: u64) {
        self.waiting -= 1;
        self.waiting_bytes -= bytes;
    }

    /// Makes the call wait for this many other calls.
    pub(crate) fn block(&mut self, id: CallId, waits_for: u32) {
        if let Some(call) = self.get_mut(id) {
            call.state = CallState::Blocked { waits_for };
            let bytes = call.task.bytes;
            self.blocked += 1;
            self.blocked_bytes += bytes;
        }
    }

    /// Records that one of the calls that a call waits for has ended. Returns whether it was the last.
    pub(crate) fn has_one_less_to_wait_for(&mut self, id: CallId) -> bool {
        match self.get_mut(id).map(|call| &mut call.state) {
            Some(CallState::Blocked { waits_for }) => {
                *waits_for -= 1;
                *waits_for == 0
            }
            _ => false,
        }
    }

    /// Ends a call's wait for other calls; the caller queues it at once.
    pub(crate) fn unblock(&mut self, id: CallId) {
        if let Some(call) = self.get(id) {
            self.leave_blocked(call.task.bytes);
        }
    }

    fn leave_blocked(&mut self, bytes: u64) {
        self.blocked -= 1;
        self.blocked_bytes -= bytes;
    }

    /// Number and bytes of the calls that wait for a worker, in any queue, or for other calls.
    pub(crate) fn all_waiting(&self) -> (usize, u64) {
        (
            self.queued(None) + self.bound + self.multicore + self.waiting + self.blocked,
            self.queued_bytes + self.wide_bytes + self.waiting_bytes + self.blocked_bytes,
        )
    }

    /// Number of calls that wait for a group, or for any worker.
    pub(crate) fn queued(&self, group: Option<GroupId>) -> usize {
        self.queued[at(group)]
    }

    pub(crate) fn live(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (CallId, &Call<T>)> {
        self.slots.iter().enumerate().filter_map(|(index, slot)| {
            Some((CallId::new(index as u32, slot.generation), slot.call.as_ref()?))
        })
    }

    pub(crate) fn queue_len(&self, group: Option<GroupId>) -> usize {
        self.lines[at(group)].iter().map(|line| line.queue.len()).sum()
    }
}
