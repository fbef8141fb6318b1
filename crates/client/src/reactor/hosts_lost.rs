//! Detection of lost or missing hosts, and their release.

use std::sync::Arc;

use gridrpc_core::{Cause, End, Loss, WorkerId};
use gridrpc_wire::{Message, WireError};

use crate::call::{NotifiedWatchers, Outcome};
use crate::hosts::error_hints::{agent_left, not_come, silent};
use crate::hosts::peers::{HostEntry, LostPeer, Stage, called};
use crate::hosts::plans::Plan;
use crate::reactor::Reactor;
use crate::reactor::deadlines::{Agent, Connection, Deadline};
use crate::sync::{now, ns};

/// Number of liveness checks by each end within the time-out of a connection.
pub(super) const LOOKS: u64 = 3;
/// How long to wait for a launcher to report why an agent is gone, ns. The agent's calls wait too.
const SAYING: u64 = 3_000_000_000;

impl Reactor {
    /// Handles an agent that should have dialled by now.
    pub(super) fn see_to_agent(&mut self, requested: Agent) {
        let index = requested.index as usize;
        let Some(hosts) = &self.hosts else { return };
        let entry = &hosts.entries[index];
        if matches!(entry.stage, Stage::Asked) && entry.agent == Some(requested.agent) {
            let timeout = hosts.connectors.start_timeout(&hosts.plans[index]);
            let why = not_come(timeout, &entry.state);
            self.lose_host(index, Cause::Failed(why));
        }
    }

    /// Checks that a host is alive. Sends it a ping if it has answered calls, whose times need its clock, or if its own
    /// pings are missing: a client that waits for nothing need not wake up, nor wake its server, for a ping of its own.
    pub(super) fn see_to_host(&mut self, connection: Connection) {
        let index = connection.index as usize;
        let Some(hosts) = &mut self.hosts else { return };
        let entry = &mut hosts.entries[index];
        let Stage::There(peer) = &mut entry.stage else { return };
        if entry.generation != connection.generation {
            return;
        }
        let heartbeat = hosts.connectors.group(&hosts.plans[index]).heartbeat;
        let now = now();
        if peer.heard + ns(heartbeat) <= now && peer.conversation.receiver.is_readable() {
            // Data has arrived; this process has not got round to reading it.
            peer.heard = now;
        }
        if peer.heard + ns(heartbeat) <= now {
            let why = match hosts.dialled(index) {
                Some(dialled) => dialled.silent(heartbeat),
                None => silent(heartbeat),
            };
            return self.leave_host(index, why);
        }
        let pause = ns(heartbeat) / LOOKS;
        // Half a pause is left for the answer.
        let silent_from = peer.heard + (ns(heartbeat) - pause / 2);
        let asks = peer.has_answered || silent_from <= now;
        if asks && peer.requested + pause <= now {
            (peer.requested, peer.spoke, peer.has_answered) = (now, now, false);
            // The agent sends first.
            if peer.joined {
                peer.ask();
            }
        }
        let next = if asks { peer.requested + pause } else { silent_from };
        let next = next.min(peer.heard + ns(heartbeat));
        self.deadlines.add(next, Deadline::Heard(connection));
    }

    /// Handles the loss of a host's agent. If its launcher can report the reason, waits for that.
    pub(super) fn leave_host(&mut self, index: usize, why: String) {
        let Some(hosts) = &mut self.hosts else { return };
        let id = hosts.id(index);
        let entry = &mut hosts.entries[index];
        if let Some(how) = entry.ended.take() {
            return self.lose_host(index, Cause::Failed(agent_left(&how)));
        }
        let says = self.closing.is_none()
            && entry.agent.is_some_and(|agent| hosts.connectors.lost(agent, &hosts.plans[index]));
        let Stage::There(peer) = &entry.stage else { return };
        if !says {
            return self.lose_host(index, Cause::Failed(why));
        }
        let _ = self.epoll.delete(peer.conversation.receiver.socket());
        let (host, pid) = (peer.host.clone(), peer.pid);
        let now = now();
        let connection = Connection { index: index as u32, generation: entry.generation };
        self.deadlines.add(now + SAYING, Deadline::Left(connection));
        let gone = Stage::Left(Box::new(LostPeer { why, host, pid }));
        let peer = std::mem::replace(&mut entry.stage, gone);
        let mut state = self.common.lock();
        // Nothing more is sent there in the meantime.
        state.drive(|core, out| core.host_leaves(now, id, out));
        self.common.finish(state);
        drop(peer);
    }

    /// Handles a launcher that has not reported in time why the agent of this connection is gone.
    pub(super) fn see_to_left(&mut self, connection: Connection) {
        let index = connection.index as usize;
        let Some(hosts) = &self.hosts else { return };
        let entry = &hosts.entries[index];
        if let Stage::Left(gone) = &entry.stage
            && entry.generation == connection.generation
        {
            let why = gone.why.clone();
            self.lose_host(index, Cause::Failed(why));
        }
    }

    /// Handles a host that is gone or unavailable.
    pub(super) fn lose_host(&mut self, index: usize, cause: Cause) {
        let Some(hosts) = &mut self.hosts else { return };
        let id = hosts.id(index);
        let plan = hosts.plans[index].clone();
        hosts.fetching.forget(index);
        let entry = &mut hosts.entries[index];
        let stage = std::mem::replace(&mut entry.stage, Stage::Absent);
        let (host, pid) = match &stage {
            Stage::Absent => return,
            Stage::Asked => (plan.name.clone(), 0),
            Stage::Left(gone) => (gone.host.clone(), gone.pid),
            Stage::There(peer) => {
                let _ = self.epoll.delete(peer.conversation.receiver.socket());
                (peer.host.clone(), peer.pid)
            }
        };
        // An agent that says goodbye ends by itself.
        if let Some(agent) = entry.agent.take()
            && self.closing.is_none()
        {
            hosts.connectors.stop(agent, &plan);
        }
        let stderr = String::from_utf8_lossy(&entry.said).trim_end().to_owned();
        let host = called(&plan.name, &host);
        let loss = Loss { worker: Loss::HOST, pid, host, cause, stderr };
        let mut state = self.common.lock();
        let now = now();
        state.hosts.set(id, None);
        state.hosts.break_chains(id);
        let loss_of_results = Arc::new(loss.clone());
        state.drive(|core, out| core.worker_lost(now, id, None, loss, out));
        let lost = state.lose_results(id);
        let ready = std::mem::take(&mut state.to_gather);
        let closing = state.closing;
        let broken = state.core.broken().cloned();
        self.common.finish(state);
        let mut notified = NotifiedWatchers::default();
        for call in lost {
            let end = if closing { End::Closed } else { End::WorkerLost(loss_of_results.clone()) };
            notified.merge(call.finish(Outcome::Ended(end), None));
        }
        drop(notified);
        self.common.gather(ready);
        drop(stage);
        self.common.workers_changed(broken.as_deref());
    }

    /// Releases hosts that are no longer wanted: their agents end by themselves, or do not start.
    pub(super) fn retire_hosts(&mut self, ids: &[WorkerId]) {
        for id in ids {
            let Some(index) = self.hosts.as_ref().and_then(|hosts| hosts.index(*id)) else {
                continue;
            };
            match self.peer(index) {
                Some(peer) if peer.joined => {
                    if peer.up.push(&Message::Goodbye).is_ok() {
                        peer.up.flush();
                    }
                }
                _ => self.lose_host(index, Cause::Failed("it was given back".to_owned())),
            }
        }
    }

    /// Gives up a host because a message to it exceeds the limits of the format.
    pub(super) fn give_up_host(&mut self, id: WorkerId, error: &WireError) {
        if let Some(index) = self.hosts.as_ref().and_then(|hosts| hosts.index(id)) {
            self.lose_host(index, Cause::Failed(format!("a message cannot be sent: {error}")));
        }
    }

    /// Tells all agents to end.
    pub(super) fn dismiss_hosts(&mut self) {
        let Some(hosts) = &mut self.hosts else { return };
        for index in 0..hosts.entries.len() {
            let plan = &hosts.plans[index];
            let entry = &mut hosts.entries[index];
            match &entry.stage {
                Stage::Absent => {}
                Stage::Left(_) => entry.stage = Stage::Absent,
                Stage::Asked => {
                    entry.stage = Stage::Absent;
                    if let Some(agent) = entry.agent {
                        hosts.connectors.stop(agent, plan);
                    }
                }
                Stage::There(peer) => {
                    if peer.up.push(&Message::Goodbye).is_ok() {
                        peer.up.flush();
                    }
                }
            }
        }
    }

    /// Closes connections to servers that outlive the grid, once all has been sent.
    pub(super) fn leave_servers(&mut self) {
        let Some(hosts) = &self.hosts else { return };
        let is_served = |(entry, plan): (&HostEntry, &Plan)| {
            let sent = matches!(&entry.stage, Stage::There(peer) if peer.up.waiting() == 0);
            sent && !hosts.connectors.owns_agent(plan)
        };
        let entries = hosts.entries.iter().zip(&hosts.plans).enumerate();
        let left = entries.filter(|(_, host)| is_served(*host)).map(|(index, _)| index);
        for index in left.collect::<Vec<usize>>() {
            self.lose_host(index, Cause::Failed("the grid was closed".to_owned()));
        }
    }

    /// Ends all remaining agents.
    pub(super) fn end_hosts(&mut self) {
        if let Some(hosts) = &mut self.hosts {
            hosts.connectors.close();
        }
    }
}
