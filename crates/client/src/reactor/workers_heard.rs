//! Reading and applying messages of workers on this machine.

use std::io;
use std::sync::Arc;

use gridrpc_core::{BlobId, CallId, Core, OccupiedTime, Time, WorkerId};
use gridrpc_shm::outbox::{Take, take, take_rest};
use gridrpc_sys::monotonic_ns;
use gridrpc_wire::nested_call::is_request;
use gridrpc_wire::{Message, Stamps};

use crate::call::{Call, NotifiedWatchers, Outcome};
use crate::common::callbacks::PendingCallback;
use crate::reactor::Reactor;
use crate::reactor::deadlines::{Deadline, Process};
use crate::reactor::worker_input::Event;
use crate::sync::now;

/// Number of attempts to read the outbox of a worker that is just sending.
const LOOKS: usize = 4;
/// How long a worker that has closed its connection has to end by itself, ns.
const LEAVE_GRACE: u64 = 1_000_000_000;

impl Reactor {
    /// Reads once from a worker. Returns whether anything has come: messages, or its end.
    pub(super) fn poll_worker(&mut self, index: u32) -> bool {
        let has_come = self.read_worker(index);
        let Some(worker_input) = self.worker_inputs[index as usize].as_ref() else { return true };
        let generation = worker_input.generation;
        let is_over = worker_input.is_over();
        if is_over {
            let _ = self.epoll.delete(worker_input.receiver.socket());
        }
        if worker_input.broken.is_some() {
            // If it is gone already, the spawner reports that, and how it ended.
            self.kill(&[WorkerId(index)]);
        } else if worker_input.at_end {
            // It is most likely ending by itself, and then its exit status is more precise.
            self.deadlines.add(now() + LEAVE_GRACE, Deadline::Gone(Process { index, generation }));
        }
        has_come || is_over
    }

    /// Reads once from a worker and applies the messages. Returns `false` when there is nothing more to read.
    pub(super) fn read_worker(&mut self, index: u32) -> bool {
        let Some(worker_input) = self.worker_inputs[index as usize].as_mut() else { return false };
        if worker_input.is_over() {
            return false;
        }
        let events = match worker_input.receiver.fill() {
            Ok(0) => {
                worker_input.at_end = true;
                return false;
            }
            Ok(_) => {
                let events = worker_input.take_events();
                self.maps_results |= !worker_input.mapped.is_empty();
                events
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return true,
            // Its process is gone or going; the spawner's report decides.
            Err(_) => {
                worker_input.at_end = true;
                return false;
            }
        };
        let events = self.confine(index, events);
        self.apply(WorkerId(index), events);
        true
    }

    /// Collects answers that a worker holds back although its next call takes long.
    pub(super) fn collect(&mut self, index: u32) {
        for _ in 0..LOOKS {
            while self.read_worker(index) {}
            let Some(worker_input) = self.worker_inputs[index as usize].as_mut() else { return };
            if worker_input.broken.is_some() {
                return;
            }
            let mut bytes = Vec::new();
            match take(&worker_input.outbox, worker_input.receiver.position(), &mut bytes) {
                Take::Nothing => return,
                Take::Taken => return self.feed(index, &bytes),
                Take::Again => {}
            }
        }
    }

    /// Takes the unsent messages of a worker that is gone.
    pub(super) fn take_rest(&mut self, index: u32) {
        let Some(worker_input) = self.worker_inputs[index as usize].as_mut() else { return };
        if worker_input.broken.is_some() {
            return;
        }
        let mut bytes = Vec::new();
        take_rest(&worker_input.outbox, worker_input.receiver.position(), &mut bytes);
        self.feed(index, &bytes);
    }

    fn feed(&mut self, index: u32, bytes: &[u8]) {
        if let Some(worker_input) = self.worker_inputs[index as usize].as_mut() {
            worker_input.receiver.feed(bytes);
            let events = worker_input.take_events();
            self.apply(WorkerId(index), events);
        }
    }

    /// Applies messages of a worker.
    fn apply(&mut self, worker: WorkerId, events: Vec<Event>) {
        if events.is_empty() {
            return;
        }
        let mut unexpected = None;
        let mut answered: Vec<(Arc<Call>, Outcome, Stamps)> = Vec::with_capacity(events.len());
        // Declared before the lock, so that they are dropped after the lock is released.
        let mut unwanted = Vec::new();
        let mut wanted = Vec::new();
        let mut state = self.common.lock();
        let now = Time(monotonic_ns());
        state.note_progress(now, worker);
        let mut changed = false;
        for event in events {
            match event {
                Event::Welcome { pid } => {
                    if let Some(out) = state.workers.get(worker) {
                        out.pid = pid;
                    }
                    state.drive(|core, out| core.worker_ready(now, worker, out));
                    changed = true;
                }
                Event::Release(leases) => {
                    if let Some(out) = state.workers.get(worker) {
                        let released = out.release(&leases);
                        state.garbage.extend(released);
                    }
                }
                Event::BlobDropped { blob, unread } => {
                    state.drive(|core, out| core.blob_dropped(worker, BlobId(blob), unread, out));
                }
                Event::Callback { call: id, index, arguments, order } => {
                    let call = state.core.payload_at(CallId(id), worker).cloned();
                    if is_request(index) && call.as_ref().is_some_and(|call| call.is_of_parent()) {
                        // That client serves it; no call may wait behind it here.
                        state.drive(|core, out| core.nests(worker, out));
                    }
                    match call {
                        Some(call) => {
                            wanted.push(PendingCallback {
                                worker,
                                id,
                                call,
                                index,
                                arguments,
                                order,
                            });
                        }
                        None => {
                            let message = "the call has ended";
                            state.push(worker, &Message::CallbackFailure { call: id, message });
                        }
                    }
                }
                Event::Answer { call, stamps, retained, mut outcome } => {
                    let sent = state.core.payload(CallId(call));
                    if let Some(Err(error)) = sent.map(|sent| sent.find_left(&mut outcome)) {
                        unexpected = Some(format!("a result that is not there: {error}"));
                        continue;
                    }
                    let took = OccupiedTime {
                        ran: stamps.calc_out.saturating_sub(stamps.calc_in),
                        whole: stamps.calc_out.saturating_sub(stamps.received),
                    };
                    let raised = matches!(outcome, Outcome::Raised { .. });
                    let replied = state.drive(|core, out| {
                        let answered = if raised { Core::raised } else { Core::replied };
                        answered(core, now, worker, CallId(call), took, out)
                    });
                    match replied {
                        Ok((call, live)) => {
                            if let Some(payload) = call.take_payload() {
                                let out = state.workers.get(worker);
                                if let Some(out) = out.filter(|_| !retained.is_empty()) {
                                    out.retain(&retained, payload);
                                } else {
                                    state.garbage.push(payload);
                                }
                            }
                            if live {
                                state.core.result_came(call.function().id(), outcome.bytes());
                                answered.push((call, outcome, stamps));
                            } else {
                                unwanted.push(outcome);
                            }
                        }
                        Err(error) => unexpected = Some(error.to_string()),
                    }
                }
            }
        }
        let waiting = state.waiting_for_room > 0 && state.core.has_room(0);
        let ready = std::mem::take(&mut state.to_gather);
        self.common.finish(state);
        let (nested, wanted): (Vec<_>, Vec<_>) =
            wanted.into_iter().partition(PendingCallback::is_nested);
        wanted.into_iter().for_each(|wanted| self.runner.take(wanted));
        let mut notified = NotifiedWatchers::default();
        for (call, outcome, stamps) in answered {
            notified.merge(call.finish(outcome, Some(stamps)));
        }
        drop(notified);
        self.common.gather(ready);
        nested.iter().for_each(|wanted| self.common.serve_nested(wanted));
        if changed {
            self.common.workers_changed(None);
        } else if waiting {
            self.common.changed.notify_all();
        }
        if let (Some(why), Some(worker_input)) =
            (unexpected, &mut self.worker_inputs[worker.0 as usize])
        {
            worker_input.broken.get_or_insert(why);
        }
    }
}
