//! Noticing that hosts are gone or do not come, and letting go of them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use gridrpc_core::{Cause, End, Loss, Time, WorkerId};
use gridrpc_wire::{Message, WireError};

use crate::client::call::Outcome;
use crate::client::hosts::peers::{Left, Stage, called};
use crate::client::hosts::remedies::{agent_left, not_come};
use crate::client::reactor::Reactor;
use crate::sys::monotonic_ns;

/// As often each end looks whether the other is there, in the time after which that is taken for lost.
const LOOKS: u32 = 3;
/// How long a launcher is waited for that will say how an agent came to be gone. Its calls wait as long.
const SAYING: Duration = Duration::from_secs(3);

impl Reactor {
    /// Looks whether hosts are there that ought to be; says when to look again.
    pub(super) fn see_to_hosts(&mut self) -> Option<Instant> {
        let hosts = self.hosts.as_mut()?;
        let now = Instant::now();
        let mut next: Option<Instant> = None;
        let (mut lost, mut left) = (Vec::new(), Vec::new());
        let mut wait_until = |due: Instant| next = Some(next.map_or(due, |next| next.min(due)));
        for (index, place) in hosts.places.iter_mut().enumerate() {
            let server = hosts.launching.server(&hosts.plans[index]);
            match &mut place.stage {
                Stage::Absent => {}
                Stage::Asked(until) if *until <= now => {
                    lost.push((index, Cause::Failed(not_come(server.start_timeout, &place.state))));
                }
                Stage::Asked(until) => wait_until(*until),
                Stage::Left(gone) if gone.until <= now => {
                    lost.push((index, Cause::Failed(gone.why.clone())));
                }
                Stage::Left(gone) => wait_until(gone.until),
                Stage::There(peer) => {
                    let heartbeat = server.heartbeat;
                    if heartbeat.is_zero() {
                        continue;
                    }
                    if peer.heard + heartbeat <= now {
                        let seconds = heartbeat.as_secs_f64();
                        let why = format!(
                            "it was silent for {seconds} s: its agent is stopped, or the network is \
                             cut (see `heartbeat` in the configuration of the server)"
                        );
                        left.push((index, why));
                        continue;
                    }
                    wait_until(peer.heard + heartbeat);
                    if !peer.joined {
                        // It is to speak first.
                        continue;
                    }
                    if peer.asked + heartbeat / LOOKS <= now {
                        peer.asked = now;
                        peer.ask();
                    }
                    wait_until(peer.asked + heartbeat / LOOKS);
                }
            }
        }
        for (index, cause) in lost {
            self.lose_host(index, cause);
        }
        for (index, why) in left {
            self.leave_host(index, why);
            next = Some(next.map_or(now + SAYING, |next| next.min(now + SAYING)));
        }
        next
    }

    /// A host's agent is gone. Where its launcher can say how that came, it is waited for.
    pub(super) fn leave_host(&mut self, index: usize, why: String) {
        let Some(hosts) = &mut self.hosts else { return };
        let id = hosts.id(index);
        let place = &mut hosts.places[index];
        if let Some(how) = place.ended.take() {
            return self.lose_host(index, Cause::Failed(agent_left(&how)));
        }
        let says = self.closing.is_none()
            && place.agent.is_some_and(|agent| hosts.launching.lost(agent, &hosts.plans[index]));
        let Stage::There(peer) = &place.stage else { return };
        if !says {
            return self.lose_host(index, Cause::Failed(why));
        }
        let _ = self.epoll.delete(peer.conversation.receiver.socket());
        let (host, pid) = (peer.host.clone(), peer.pid);
        let until = Instant::now() + SAYING;
        let gone = Stage::Left(Box::new(Left { until, why, host, pid }));
        let peer = std::mem::replace(&mut place.stage, gone);
        let mut state = self.common.lock();
        // Nothing more is sent there meanwhile.
        let now = Time(monotonic_ns());
        state.drive(|core, out| core.host_leaves(now, id, out));
        self.common.finish(state);
        drop(peer);
    }

    /// A host is gone, or cannot be had.
    pub(super) fn lose_host(&mut self, index: usize, cause: Cause) {
        let Some(hosts) = &mut self.hosts else { return };
        let id = hosts.id(index);
        let plan = hosts.plans[index].clone();
        hosts.fetching.forget(index);
        let place = &mut hosts.places[index];
        let stage = std::mem::replace(&mut place.stage, Stage::Absent);
        let (host, pid) = match &stage {
            Stage::Absent => return,
            Stage::Asked(_) => (plan.name.clone(), 0),
            Stage::Left(gone) => (gone.host.clone(), gone.pid),
            Stage::There(peer) => {
                let _ = self.epoll.delete(peer.conversation.receiver.socket());
                (peer.host.clone(), peer.pid)
            }
        };
        // One that says goodbye ends by itself.
        if let Some(agent) = place.agent.take()
            && self.closing.is_none()
        {
            hosts.launching.stop(agent, &plan);
        }
        let stderr = String::from_utf8_lossy(&place.said).trim_end().to_owned();
        let host = called(&plan.name, &host);
        let loss = Loss { worker: Loss::HOST, pid, host, cause, stderr };
        let mut state = self.common.lock();
        let now = Time(monotonic_ns());
        state.hosts.set(id, None);
        state.hosts.break_chains(id);
        let loss_of_results = Arc::new(loss.clone());
        state.drive(|core, out| core.worker_lost(now, id, None, loss, out));
        let lost = state.lose_results(id);
        let ready = std::mem::take(&mut state.to_gather);
        let closing = state.closing;
        self.common.finish(state);
        for call in lost {
            let end = if closing { End::Closed } else { End::WorkerLost(loss_of_results.clone()) };
            call.finish(Outcome::Ended(end), None);
        }
        self.common.gather(ready);
        drop(stage);
        self.common.changed.notify_all();
    }

    /// Gives up a host that was to be sent what the format does not hold.
    pub(super) fn give_up_host(&mut self, id: WorkerId, error: &WireError) {
        if let Some(index) = self.hosts.as_ref().and_then(|hosts| hosts.index(id)) {
            self.lose_host(index, Cause::Failed(format!("a message cannot be sent: {error}")));
        }
    }

    /// Tells all agents that nothing more is wanted.
    pub(super) fn dismiss_hosts(&mut self) {
        let Some(hosts) = &mut self.hosts else { return };
        for index in 0..hosts.places.len() {
            let plan = &hosts.plans[index];
            let place = &mut hosts.places[index];
            match &place.stage {
                Stage::Absent => {}
                Stage::Left(_) => place.stage = Stage::Absent,
                Stage::Asked(_) => {
                    place.stage = Stage::Absent;
                    if let Some(agent) = place.agent {
                        hosts.launching.stop(agent, plan);
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

    /// All that is left of agents ends.
    pub(super) fn end_hosts(&mut self) {
        if let Some(hosts) = &mut self.hosts {
            hosts.launching.close();
        }
    }
}
