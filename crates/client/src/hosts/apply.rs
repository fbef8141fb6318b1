//! Applies messages of a host to the state, under its lock.

use std::sync::Arc;

use gridrpc_core::{BlobId, CallId, Core, End, Loss, OccupiedTime, Time, WorkerId};
use gridrpc_link::payload::Incoming;
use gridrpc_shm::Recovered;
use gridrpc_sys::monotonic_ns;
use gridrpc_wire::nested_call::is_request;
use gridrpc_wire::{Order, RemoteError, Stamps};

use crate::call::{Call, LostItems, Outcome, RemotePart, RemoteResult, ResultLease, moved};
use crate::common::Common;
use crate::common::callbacks::PendingCallback;
use crate::hosts::agent_messages::{HostEvent, RemoteEnd, refused};
use crate::hosts::clock::Offset;
use crate::hosts::peers::called;
use crate::state::State;
use crate::state::remote_results::again;

/// The sender of the messages, and work to do after the lock is released.
pub(crate) struct Applied<'a> {
    pub(crate) id: WorkerId,
    /// The host's name in the configuration; empty: this machine.
    pub(crate) name: &'a str,
    pub(crate) offset: Offset,
    pub(crate) common: &'a Arc<Common>,
    /// Calls that have ended.
    pub(crate) answered: Vec<(Arc<Call>, Outcome, Stamps)>,
    /// Calls whose results stay on the host.
    pub(crate) remote_results: Vec<(Arc<Call>, RemoteResult, Stamps)>,
    /// Calls whose results had stayed on the host.
    pub(crate) fetched: Vec<(Arc<Call>, Vec<Incoming>, Order)>,
    /// Outcomes that nobody needs.
    pub(crate) unwanted: Vec<Outcome>,
    /// Callbacks to run.
    pub(crate) wanted: Vec<PendingCallback>,
    /// Events that concern no call.
    pub(crate) later: Vec<HostEvent>,
    /// A message that does not match any request.
    pub(crate) broken: Option<String>,
    /// Workers have been added or lost.
    pub(crate) changed: bool,
}

impl<'a> Applied<'a> {
    pub(crate) fn new(
        id: WorkerId,
        name: &'a str,
        offset: Offset,
        common: &'a Arc<Common>,
    ) -> Applied<'a> {
        Applied {
            id,
            name,
            offset,
            common,
            answered: Vec::new(),
            remote_results: Vec::new(),
            fetched: Vec::new(),
            unwanted: Vec::new(),
            wanted: Vec::new(),
            later: Vec::new(),
            broken: None,
            changed: false,
        }
    }

    /// Applies one event.
    pub(crate) fn apply(&mut self, state: &mut State, event: HostEvent) {
        let now = Time(monotonic_ns());
        let id = self.id;
        match event {
            HostEvent::Workers { ready, wanted } => {
                if let Some(out) = state.hosts.get(id) {
                    out.slots = ready;
                }
                state.drive(|core, out| core.host_has(now, id, ready, wanted, out));
                self.changed = true;
            }
            HostEvent::Answer {
                call,
                outcome: Outcome::Raised { error, sections, order, .. },
                ..
            } if LostItems::are_told(&error) => {
                let Some(lost) = LostItems::decode(sections, order) else {
                    self.broken = Some("a lost worker that makes no sense".to_owned());
                    return;
                };
                let LostItems { loss, ended, running, results, order } = lost;
                let sections = results.iter().map(|part| part.bytes().to_vec()).collect();
                let recovered = Recovered { ended, running, sections };
                state.recovered = Some((CallId(call), recovered, order));
                self.ended(state, now, call, RemoteEnd::Lost(loss));
                state.recovered = None;
            }
            HostEvent::Answer { call, stamps, outcome } => {
                self.answered(state, now, call, stamps, outcome);
            }
            HostEvent::Kept { call, stamps, parts, order } => {
                self.remote_result(state, now, call, stamps, parts, order);
            }
            HostEvent::Fetched { call, sections, order } => {
                if let Some(known) = state.remote_results.call(call) {
                    let waiting = state.remote_results.came(call);
                    state.to_gather.extend(waiting);
                    state.garbage.extend(known.take_payload());
                    let bytes = sections.iter().map(moved).sum();
                    state.core.result_came(known.function().id(), bytes);
                    self.fetched.push((known, sections, order));
                }
            }
            HostEvent::Ended { call, end } => self.ended(state, now, call, end),
            HostEvent::Callback { call: id, index, arguments, order } => {
                match state.core.payload_at(CallId(id), self.id).cloned() {
                    Some(call) => {
                        let worker = self.id;
                        if is_request(index) && call.is_of_parent() {
                            state.drive(|core, out| core.nests(worker, out));
                        }
                        self.wanted.push(PendingCallback {
                            worker,
                            id,
                            call,
                            index,
                            arguments,
                            order,
                        });
                    }
                    None => state.fail_callback(self.id, id, "the call has ended"),
                }
            }
            HostEvent::Reserved { number, lost } => {
                self.reserved(state, now, number, lost);
            }
            HostEvent::Retracted(calls) => {
                calls.iter().for_each(|call| state.no_remote_result(id, *call));
                if let Some(out) = state.hosts.get(id) {
                    out.retracted(&calls);
                }
                let calls: Vec<CallId> = calls.into_iter().map(CallId).collect();
                state.drive(|core, out| core.retracted(now, id, &calls, out));
            }
            HostEvent::Detached { call, id } => self.detached(state, now, call, id),
            HostEvent::NotDetached { call, error } => {
                if let Some(waiting) = state.detaching.remove(&CallId(call)) {
                    // Nobody waits any more.
                    let _ = waiting.send(Err(error));
                }
            }
            HostEvent::Missing(blob) | HostEvent::NotPassed { blob, .. }
                if state.lose_copy(blob) => {}
            HostEvent::Missing(blob) => state.share_again(id, BlobId(blob)),
            HostEvent::NotPassed { blob, to } => state.share_again(WorkerId(to), BlobId(blob)),
            HostEvent::BlobDropped { blob, unread } => {
                state.drive(|core, out| core.blob_dropped(id, BlobId(blob), unread, out));
            }
            other => self.later.push(other),
        }
    }

    fn answered(
        &mut self,
        state: &mut State,
        now: Time,
        call: u64,
        mut stamps: Stamps,
        mut outcome: Outcome,
    ) {
        let sent = state.core.payload(CallId(call));
        if let Some(Err(error)) = sent.map(|sent| sent.find_left(&mut outcome)) {
            self.broken = Some(format!("a result that is not there: {error}"));
            return;
        }
        let Some(out) = state.hosts.get(self.id) else { return };
        let took = seen_from_here(&mut stamps, &self.offset, out.base);
        let executor = state.hosts.answered_by(call, self.id);
        state.no_remote_result(self.id, call);
        let Some(executor) = executor else { return self.unwanted.push(outcome) };
        let raised = matches!(outcome, Outcome::Raised { .. });
        let replied = state.drive(|core, out| {
            let answered = if raised { Core::raised } else { Core::replied };
            answered(core, now, executor, CallId(call), took, out)
        });
        match replied {
            Ok((call, live)) => {
                state.garbage.extend(call.take_payload());
                if live {
                    state.core.result_came(call.function().id(), outcome.bytes());
                    self.answered.push((call, outcome, stamps));
                } else {
                    self.unwanted.push(outcome);
                }
            }
            Err(error) => self.broken = Some(error.to_string()),
        }
    }

    /// Handles a call that has returned and whose result stays on the host.
    fn remote_result(
        &mut self,
        state: &mut State,
        now: Time,
        call: u64,
        mut stamps: Stamps,
        parts: Vec<RemotePart>,
        order: Order,
    ) {
        let Some(out) = state.hosts.get(self.id) else { return };
        let took = seen_from_here(&mut stamps, &self.offset, out.base);
        let executor = state.hosts.answered_by(call, self.id);
        state.hosts.keeps(self.id, call);
        let again = again(&state.core, CallId(call));
        let lease = ResultLease::new(self.id, call, &self.common.kept_requests);
        // Without its lease, the host receives a request to drop the result.
        let Some(executor) = executor else { return };
        let replied = state.drive(|core, out| core.replied(now, executor, CallId(call), took, out));
        match replied {
            Ok((known, live)) => {
                if again.is_none() || !live {
                    state.garbage.extend(known.take_payload());
                }
                if live {
                    state.remote_results.add(call, &known, self.id, again);
                    self.remote_results.push((known, RemoteResult { lease, parts, order }, stamps));
                }
            }
            Err(error) => self.broken = Some(error.to_string()),
        }
    }

    fn ended(&mut self, state: &mut State, now: Time, call: u64, mut end: RemoteEnd) {
        let Some(out) = state.hosts.get(self.id) else { return };
        if let RemoteEnd::Lost(loss) | RemoteEnd::NoWorkers(loss) = &mut end {
            loss.worker = loss.worker.saturating_add(out.base);
            loss.host = called(self.name, &loss.host);
        }
        let executor = state.hosts.answered_by(call, self.id);
        state.no_remote_result(self.id, call);
        let Some(executor) = executor else { return };
        if executor == self.id && matches!(end, RemoteEnd::NoWorkers(_)) {
            // No worker of the host has begun the call, and none will: others may run it. The host reports next that
            // it ends, and gets no more calls until then.
            return state.drive(|core, out| {
                core.host_leaves(now, executor, out);
                core.retracted(now, executor, &[CallId(call)], out);
            });
        }
        let lost = match &end {
            RemoteEnd::Lost(loss) if executor != self.id => Some(loss.clone()),
            _ => None,
        };
        let end = match end {
            RemoteEnd::Lost(loss) => Ok(End::WorkerLost(Arc::new(loss))),
            RemoteEnd::NoWorkers(loss) => Ok(End::NoWorkers(Arc::new(loss))),
            RemoteEnd::Cancelled => Ok(End::Cancelled),
            RemoteEnd::Refused(why) => Err(why),
        };
        let ended = match end {
            Ok(end) => {
                state.drive(|core, out| core.host_ended(now, executor, CallId(call), end, out))
            }
            Err(why) => {
                let took = OccupiedTime { ran: 0, whole: 0 };
                let raised =
                    state.drive(|core, out| core.raised(now, executor, CallId(call), took, out));
                if let Ok((call, true)) = &raised {
                    let stamps = Stamps::default();
                    self.answered.push((Arc::clone(call), refused(why), stamps));
                }
                raised
            }
        };
        match ended {
            Ok((call, _)) => state.garbage.extend(call.take_payload()),
            Err(error) => self.broken = Some(error.to_string()),
        }
        if let Some(loss) = lost {
            // The loss of a reserved worker is final.
            state.hosts.guest_left(executor);
            state.drive(|core, out| core.worker_lost(now, executor, None, loss, out));
            self.changed = true;
        }
    }

    /// Handles a call that its server keeps as a detached one.
    fn detached(&mut self, state: &mut State, now: Time, call: u64, id: String) {
        let executor = state.hosts.left_by(call, self.id);
        state.no_remote_result(self.id, call);
        let Some(executor) = executor else { return };
        let left = state.drive(|core, out| core.detached(now, executor, CallId(call), out));
        let (known, is_alive) = match left {
            Ok(left) => left,
            Err(error) => {
                self.broken = Some(error.to_string());
                return;
            }
        };
        let waiting = state.detaching.remove(&CallId(call));
        let is_attached = waiting.is_some_and(|waiting| waiting.send(Ok(id)).is_ok());
        if is_alive && !is_attached {
            // Its caller was interrupted.
            let message = "the call is detached: the server lists it".to_owned();
            let (trace, sections) = (String::new(), Vec::new());
            let error = RemoteError::CallLost.name().to_owned();
            let order = Order::NATIVE;
            let outcome = Outcome::Raised { error, message, trace, sections, order };
            self.answered.push((known, outcome, Stamps::default()));
        }
    }

    /// Handles the start or loss of a reserved worker.
    fn reserved(&mut self, state: &mut State, now: Time, number: u32, lost: Option<Loss>) {
        let guest = state.hosts.guest(number);
        let Some(guest) = guest.filter(|guest| state.core.home(*guest) == Some(self.id)) else {
            return;
        };
        if lost.is_some() {
            state.hosts.guest_left(guest);
        }
        state.drive(|core, out| match lost {
            None => core.worker_ready(now, guest, out),
            Some(mut loss) => {
                loss.host = called(self.name, &loss.host);
                core.worker_lost(now, guest, None, loss, out);
            }
        });
        self.changed = true;
    }
}

/// Converts the stamps of an answer to this host's clock and to the grid's worker number.
fn seen_from_here(stamps: &mut Stamps, offset: &Offset, first_worker: u32) -> OccupiedTime {
    stamps.worker = stamps.worker.saturating_add(first_worker);
    for time in [&mut stamps.received, &mut stamps.calc_in, &mut stamps.calc_out] {
        *time = offset.here(*time);
    }
    OccupiedTime {
        ran: stamps.calc_out.saturating_sub(stamps.calc_in),
        whole: stamps.calc_out.saturating_sub(stamps.received),
    }
}
