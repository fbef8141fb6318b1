//! Reading messages from hosts.

use std::io;
use std::sync::Arc;

use gridrpc_config::WorkerOutput;
use gridrpc_core::{Cause, Time};
use gridrpc_sys::monotonic_ns;
use gridrpc_wire::{Message, PARTING, RemoteError};

use crate::call::{NotifiedWatchers, Outcome};
use crate::common::callbacks::PendingCallback;
use crate::hosts::agent_messages::HostEvent;
use crate::hosts::apply::Applied;
use crate::hosts::clock::Offset;
use crate::hosts::commands::is_here;
use crate::hosts::dialled::DialTarget;
use crate::hosts::error_hints::{agent_gone, no_workers, other_version};
use crate::hosts::peers::{Peer, Stage};
use crate::reactor::{Reactor, Token};
use crate::sync::{now, ns};

/// Number of clock readings taken when a host has joined.
const FIRST_READINGS: u64 = 8;

impl Reactor {
    pub(super) fn is_current_host(&self, index: u32, generation: u32) -> bool {
        let entry = self.hosts.as_ref().and_then(|hosts| hosts.entries.get(index as usize));
        entry.is_some_and(|entry| {
            Token::is_generation(entry.generation, generation)
                && matches!(entry.stage, Stage::There(_))
        })
    }

    /// Continues to send to a host.
    pub(super) fn send_to_host(&mut self, index: u32) {
        if let Some(peer) = self.peer(index as usize) {
            peer.up.flush();
        }
    }

    pub(super) fn peer(&mut self, index: usize) -> Option<&mut Peer> {
        match &mut self.hosts.as_mut()?.entries.get_mut(index)?.stage {
            Stage::There(peer) => Some(peer),
            _ => None,
        }
    }

    /// Reads messages from a host. Returns whether anything has come: messages, or its end.
    pub(super) fn poll_host(&mut self, index: u32) -> bool {
        let index = index as usize;
        let mut has_come = false;
        loop {
            let Some(peer) = self.peer(index) else { return has_come };
            let filled = peer.conversation.receiver.fill();
            match filled {
                Ok(0) => {
                    self.lose_connection(index, "it closed the connection");
                    return true;
                }
                Ok(_) => {
                    has_come = true;
                    peer.heard = now();
                    let events = peer.conversation.events();
                    let more = peer.conversation.receiver.has_more();
                    let has_begun = peer.joined || !events.is_empty();
                    self.note_coming(index);
                    self.apply_host(index, events);
                    // Checked afterwards: a message may not match any request.
                    let broken = self.peer(index).and_then(|peer| peer.conversation.broken.clone());
                    if let Some(why) = broken {
                        let why = match has_begun {
                            true => format!("what its agent says makes no sense: {why}"),
                            false => format!("{}: {why}", self.other_version(index, None)),
                        };
                        self.lose_host(index, Cause::Failed(why));
                        return true;
                    }
                    if !more {
                        return true;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return has_come,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.lose_connection(index, &error.to_string());
                    return true;
                }
            }
        }
    }

    /// Handles the end of a host's connection.
    fn lose_connection(&mut self, index: usize, how: &str) {
        let Some(hosts) = &self.hosts else { return };
        let why = match hosts.dialled(index) {
            Some(dialled) => dialled.gone(how),
            None => agent_gone(how),
        };
        self.leave_host(index, why);
    }

    /// Why a host with another message format cannot serve this client.
    fn other_version(&self, index: usize, version: Option<&str>) -> String {
        match self.hosts.as_ref().and_then(|hosts| hosts.dialled(index)) {
            Some(dialled) => dialled.of_other_version(version),
            None => other_version(version),
        }
    }

    /// Records the progress of large answers of a host.
    pub(super) fn note_coming(&mut self, index: usize) {
        let Some(hosts) = &mut self.hosts else { return };
        if let Stage::There(peer) = &hosts.entries[index].stage
            && peer.holds
        {
            let coming = peer.conversation.receiver.coming();
            hosts.fetching.add_sample(now(), index, coming);
        }
    }

    /// Requests as many large answers as there is room for. Returns when there will be more room.
    pub(super) fn fetch_from_hosts(&mut self) -> Option<Time> {
        let hosts = self.hosts.as_mut().filter(|hosts| !hosts.fetching.is_idle())?;
        let now = now();
        let next: Vec<usize> = std::iter::from_fn(|| hosts.fetching.next(now)).collect();
        if !next.is_empty() {
            let mut state = self.common.lock();
            for index in next {
                state.push(hosts.id(index), &Message::Fetch);
            }
            self.common.finish(state);
        }
        hosts.fetching.due(now)
    }

    /// Applies messages of a host.
    fn apply_host(&mut self, index: usize, events: Vec<HostEvent>) {
        let Some(hosts) = &self.hosts else { return };
        let offset = match &hosts.entries[index].stage {
            Stage::There(peer) => peer.clock.offset(monotonic_ns()),
            _ => Offset::default(),
        };
        let plan = &hosts.plans[index];
        // On this machine the name only distinguishes agents.
        let here = is_here(hosts.connectors.group(plan));
        let name = if here { String::new() } else { plan.name.clone() };
        let common = Arc::clone(&self.common);
        // Created before the lock, so that its contents are dropped after the lock is released.
        let mut applied = Applied::new(hosts.id(index), &name, offset, &common);
        // Most messages are answers: one lock for all that arrive together.
        let mut state = common.lock();
        events.into_iter().for_each(|event| applied.apply(&mut state, event));
        let waiting = state.waiting_for_room > 0 && state.core.has_room(0);
        let ready = std::mem::take(&mut state.to_gather);
        common.finish(state);
        let Applied {
            answered,
            remote_results,
            fetched,
            unwanted,
            wanted,
            later,
            broken,
            changed,
            ..
        } = applied;
        let (nested, wanted): (Vec<_>, Vec<_>) =
            wanted.into_iter().partition(PendingCallback::is_nested);
        wanted.into_iter().for_each(|wanted| self.runner.take(wanted));
        if !(answered.is_empty() && remote_results.is_empty())
            && let Some(peer) = self.peer(index)
        {
            peer.has_answered = true;
        }
        let mut notified = NotifiedWatchers::default();
        for (call, outcome, stamps) in answered {
            if let (Outcome::Raised { error, .. }, Some(offer)) =
                (&outcome, call.function().offer())
                && RemoteError::from_name(error) == Some(RemoteError::InterfaceChanged)
            {
                offer.module.change();
            }
            notified.merge(call.finish_there(outcome, stamps, offset.error, &name));
        }
        drop(notified);
        for (call, result, stamps) in remote_results {
            call.set_remote_result(result, stamps, offset.error);
        }
        for (call, sections, order) in fetched {
            call.fetched(sections, order);
        }
        common.gather(ready);
        nested.iter().for_each(|wanted| common.serve_nested(wanted));
        if changed {
            common.workers_changed(None);
        } else if waiting {
            common.changed.notify_all();
        }
        drop(unwanted);
        later.into_iter().for_each(|event| self.handle_event(index, event));
        if let (Some(why), Some(peer)) = (broken, self.peer(index)) {
            peer.conversation.broken.get_or_insert(why);
        }
    }

    /// Handles events that concern no call.
    fn handle_event(&mut self, index: usize, event: HostEvent) {
        match event {
            HostEvent::Join(joined) if self.peer(index).is_some_and(|peer| !peer.joined) => {
                self.join(index, joined);
            }
            HostEvent::Stranger(version) => {
                let why = self.other_version(index, Some(&version));
                self.lose_host(index, Cause::Failed(why));
            }
            HostEvent::NoWorkers(loss) => {
                let stderr = loss.stderr.clone();
                let Some(hosts) = &mut self.hosts else { return };
                let (id, plan) = (hosts.id(index), hosts.plans[index].clone());
                let group = hosts.connectors.group(&plan);
                let why = match DialTarget::of(&group.launcher) {
                    Some(dialled) => dialled.without_workers(&loss),
                    None => no_workers(hosts.python(group).unwrap_or_default(), &loss),
                };
                if !stderr.is_empty() {
                    hosts.entries[index].said = stderr.into_bytes();
                }
                let cause = match loss.cause {
                    Cause::Shortage(_) => Cause::Shortage(why),
                    _ => {
                        self.common.lock().core.host_has_failed(id);
                        Cause::Failed(why)
                    }
                };
                self.lose_host(index, cause);
            }
            HostEvent::Output { worker, stderr, bytes } => {
                self.print_of_host(index, worker, stderr, &bytes)
            }
            HostEvent::Ping(number) => {
                let Some(hosts) = &mut self.hosts else { return };
                let heartbeat = hosts.connectors.group(&hosts.plans[index]).heartbeat;
                let Stage::There(peer) = &mut hosts.entries[index].stage else { return };
                // The host has patience for ten heartbeats: answering each ping would wake it up for nothing.
                if number == PARTING || peer.spoke + ns(heartbeat) <= now() {
                    peer.spoke = now();
                    let pong = Message::Pong { number, clock: monotonic_ns() };
                    if peer.up.push(&pong).is_ok() {
                        peer.up.flush();
                    }
                }
            }
            HostEvent::Pong { number, clock } => {
                let now = monotonic_ns();
                let Some(peer) = self.peer(index) else { return };
                while let Some((requested, at)) = peer.pings.pop_front() {
                    if requested == number {
                        peer.round_trip = peer.round_trip.min(now.saturating_sub(at));
                        peer.clock.add_sample(at, now, clock);
                        break;
                    }
                }
                if peer.pinged < FIRST_READINGS {
                    peer.ask();
                }
                let round_trip = peer.round_trip;
                let Some(hosts) = &self.hosts else { return };
                let id = hosts.id(index);
                self.common.lock().core.host_is_away(id, round_trip);
            }
            _ => {}
        }
    }

    fn print_of_host(&self, index: usize, worker: u32, stderr: bool, bytes: &[u8]) {
        let Some(hosts) = &self.hosts else { return };
        let plan = &hosts.plans[index];
        match hosts.connectors.group(plan).output {
            WorkerOutput::Labelled => {
                let label = format!("[{} worker {worker}] ", plan.name);
                self.printers.print_labelled(stderr, &label, bytes);
            }
            WorkerOutput::Plain => self.printers.print(stderr, bytes),
            WorkerOutput::Kept => {}
        }
    }
}
