//! Requesting hosts, and the handshake with those that connect.

use std::collections::VecDeque;
use std::sync::Arc;

use gridrpc_core::{Cause, WorkerId};
use gridrpc_launch::Event;
use gridrpc_link::{Outbound, Receiver};
use gridrpc_sys::monotonic_ns;
use gridrpc_transport::Transport;
use gridrpc_wire::Message;
use nix::sys::epoll::{EpollEvent, EpollFlags};

use crate::hosts::agent_messages::{Conversation, Joined};
use crate::hosts::clock::Clock;
use crate::hosts::connector::NotRequested;
use crate::hosts::error_hints::{agent_ended, agent_left};
use crate::hosts::fetches::{FAR, FEW, LARGE};
use crate::hosts::inbox::InboxEvent;
use crate::hosts::peers::{Peer, Stage};
use crate::reactor::deadlines::{Agent, Connection, Deadline};
use crate::reactor::hosts_lost::LOOKS;
use crate::reactor::worker_input::{MAX_PAYLOAD, placement};
use crate::reactor::{Reactor, Token};
use crate::state::send_queues::{HostMemory, HostOut};
use crate::sync::{now, ns};

/// Kept tail of the output of an agent and its launcher, bytes.
const KEEP: usize = 4096;

impl Reactor {
    /// Requests connections to these hosts.
    pub(super) fn start_hosts(&mut self, ids: &[WorkerId]) {
        let Some(hosts) = &mut self.hosts else { return };
        let mut wanted = Vec::with_capacity(ids.len());
        for id in ids {
            let Some(index) = hosts.index(*id) else { continue };
            hosts.agents += 1;
            let plan = hosts.plans[index].clone();
            let until = now() + ns(hosts.connectors.start_timeout(&plan));
            let agent = Agent { index: index as u32, agent: hosts.agents };
            self.deadlines.add(until, Deadline::Dialled(agent));
            let entry = &mut hosts.entries[index];
            entry.agent = Some(hosts.agents);
            entry.stage = Stage::Asked;
            entry.state.clear();
            entry.ended = None;
            entry.ends = None;
            entry.said.clear();
            self.common.lock().hosts.note(*id, &plan.name, "is asked for an agent");
            wanted.push((hosts.agents, plan));
        }
        for NotRequested { agent, why } in hosts.connectors.connect(&wanted) {
            self.launcher_said(agent, Event::Failed(why));
        }
    }

    /// Handles news from launchers and new connections.
    pub(super) fn take_host_events(&mut self) {
        let Some(hosts) = &self.hosts else { return };
        for news in hosts.inbox.take() {
            match news {
                InboxEvent::Launcher(agent, event) => self.launcher_said(agent, event),
                InboxEvent::Connected(agent, transport) => self.admit(agent, transport),
            }
        }
    }

    pub(super) fn index_of(&self, agent: u32) -> Option<usize> {
        let entries = &self.hosts.as_ref()?.entries;
        entries.iter().position(|entry| entry.agent == Some(agent))
    }

    pub(super) fn launcher_said(&mut self, agent: u32, event: Event) {
        let Some(index) = self.index_of(agent) else { return };
        let Some(hosts) = &mut self.hosts else { return };
        let entry = &mut hosts.entries[index];
        match event {
            Event::State(state) => {
                entry.state.clone_from(&state);
                // A connected agent is further along than its launcher knows.
                if !matches!(entry.stage, Stage::Asked) {
                    return;
                }
                let id = WorkerId(hosts.first + index as u32);
                self.common.lock().hosts.note(id, &hosts.plans[index].name, &state);
            }
            Event::EndsIn(time) => {
                let at = now() + ns(time);
                entry.ends = Some(at);
                if matches!(&entry.stage, Stage::There(peer) if peer.joined) {
                    let id = hosts.id(index);
                    self.common.lock().core.host_ends(now(), id, at);
                }
            }
            Event::Said(bytes) => {
                entry.said.extend_from_slice(&bytes);
                let excess = entry.said.len().saturating_sub(KEEP);
                entry.said.drain(..excess);
                let label = format!("[{}] ", hosts.plans[index].name);
                self.printers.print_labelled(true, &label, &bytes);
            }
            Event::Failed(why) => {
                entry.agent = None;
                // A launcher that has not seen an agent run yet may say that it never did.
                let why = match &entry.stage {
                    Stage::There(_) | Stage::Left(_) => agent_left(&why),
                    Stage::Asked | Stage::Absent => why,
                };
                self.lose_host(index, Cause::Failed(why));
            }
            Event::Ended(how) => {
                entry.agent = None;
                match &entry.stage {
                    Stage::Asked => {
                        let why = agent_ended(&how, &String::from_utf8_lossy(&entry.said));
                        self.lose_host(index, Cause::Failed(why));
                    }
                    // The connection reports the loss.
                    Stage::There(_) => entry.ended = Some(how),
                    Stage::Left(_) => self.lose_host(index, Cause::Failed(agent_left(&how))),
                    Stage::Absent => {}
                }
            }
        }
    }

    pub(super) fn admit(&mut self, agent: u32, transport: Arc<dyn Transport>) {
        let Some(index) = self.index_of(agent) else { return };
        let epoll = Arc::clone(&self.epoll);
        let common = Arc::clone(&self.common);
        let Some(hosts) = &mut self.hosts else { return };
        let entry = &mut hosts.entries[index];
        if !matches!(entry.stage, Stage::Asked) || self.closing.is_some() {
            return;
        }
        entry.generation = entry.generation.wrapping_add(1);
        let token = Token::Host { index: index as u32, generation: entry.generation }.encode();
        let event = EpollEvent::new(EpollFlags::EPOLLIN, token);
        if epoll.add(transport.socket(), event).is_err() {
            return;
        }
        let socket = Arc::downgrade(&transport);
        let watch = move |blocked: bool| {
            let mut flags = EpollFlags::EPOLLIN;
            flags.set(EpollFlags::EPOLLOUT, blocked);
            let mut event = EpollEvent::new(flags, token);
            if let Some(socket) = socket.upgrade() {
                // Fails only for a host that is gone.
                let _ = epoll.modify(socket.socket(), &mut event);
            }
        };
        let up = Arc::new(Outbound::new(Arc::clone(&transport), Box::new(watch)));
        up.compress(hosts.connectors.group(&hosts.plans[index]).compression);
        let mut receiver = Receiver::new(transport, MAX_PAYLOAD);
        receiver.place_streams(placement(&common));
        let now = now();
        let trusted = hosts.connectors.group(&hosts.plans[index]).trusted;
        entry.stage = Stage::There(Box::new(Peer {
            conversation: Conversation::new(receiver, trusted),
            up,
            host: hosts.plans[index].name.clone(),
            pid: 0,
            joined: false,
            holds: false,
            heard: now,
            requested: now,
            spoke: now,
            has_answered: false,
            pings: VecDeque::new(),
            pinged: 0,
            round_trip: u64::MAX,
            clock: Clock::default(),
        }));
        let heartbeat = ns(hosts.connectors.group(&hosts.plans[index]).heartbeat);
        if heartbeat > 0 {
            let connection = Connection { index: index as u32, generation: entry.generation };
            self.deadlines.add(now + heartbeat / LOOKS, Deadline::Heard(connection));
        }
        // Data may have arrived already; the socket does not report it again.
        self.poll_host(index as u32);
    }

    /// Decides whether arguments are copied to shared memory: when workers of this machine, or all connected hosts, use
    /// it. Otherwise they are sent straight from the caller's memory.
    fn note_shared_memory(&self) {
        let Some(hosts) = &self.hosts else { return };
        let use_memory = hosts.entries.iter().all(|entry| match &entry.stage {
            Stage::There(peer) => !peer.joined || peer.conversation.uses_memory,
            _ => true,
        });
        self.common.let_hosts_use_memory(use_memory);
    }

    pub(super) fn join(&mut self, index: usize, joined: Joined) {
        let Joined { pid, processors, memory, host, boot, addresses } = joined;
        let requests = self.requests.clone();
        let Some(hosts) = &mut self.hosts else { return };
        let mut plan = hosts.plans[index].clone();
        let cores = hosts.connectors.group(&plan).launcher.cores_of_worker();
        let wanted = if plan.workers == 0 { (processors / cores).max(1) } else { plan.workers };
        if cores > 1 {
            plan.workers = wanted;
        }
        let group = hosts.connectors.group(&plan);
        let (name, offers) = (group.name.clone(), group.offers(Some(memory)));
        let exchanges = group.trusted && !addresses.is_empty();
        let id = hosts.id(index);
        let staged = match hosts.staged(&plan, &self.common) {
            Ok(staged) => staged,
            Err(why) => return self.lose_host(index, Cause::Failed(why)),
        };
        let serve = hosts.serve(&plan, &requests, &staged);
        let many = hosts.entries.len() > FEW;
        let Stage::There(peer) = &hosts.entries[index].stage else { return };
        let up = Arc::clone(&peer.up);
        let socket = peer.conversation.receiver.socket();
        let holds = many && gridrpc_sys::round_trip(socket).is_ok_and(|time| time < FAR);
        let hold = Message::Hold { bytes: LARGE as u64 };
        let pushed = staged.iter().try_for_each(|module| module.push(&up));
        let pushed = pushed.and_then(|()| up.push(&Message::Serve(serve)));
        if let Err(error) = pushed.and_then(|()| if holds { up.push(&hold) } else { Ok(()) }) {
            let why = format!("its first request cannot be sent: {error}");
            return self.lose_host(index, Cause::Failed(why));
        }
        // Descriptors cross a Unix socket, unless a program of another machine passes its bytes on.
        let is_here = !boot.is_empty() && boot == gridrpc_sys::boot_id();
        let ends = hosts.entries[index].ends;
        let uses_memory = hosts.dialled(index).is_some()
            && is_here
            && self
                .peer(index)
                .is_some_and(|peer| peer.conversation.receiver.carries_descriptors());
        let hashes = staged.into_iter().map(|module| module.hash).collect();
        if let Some(peer) = self.peer(index) {
            peer.joined = true;
            peer.clock = Clock::new(is_here);
            peer.conversation.uses_memory = uses_memory;
            peer.holds = holds;
            peer.pid = pid;
            peer.host = host;
        }
        self.note_shared_memory();
        let memory = uses_memory.then(HostMemory::default);
        let mut state = self.common.lock();
        let base = state.hosts.number(&plan.name, wanted);
        state.hosts.set(id, Some(HostOut::new(up, base, addresses, hashes, memory)));
        state.hosts.note(id, &plan.name, "has an agent, which starts workers");
        state.core.host_has_cores(id, cores);
        state.core.host_offers(id, &name, &offers);
        state.drive(|core, out| core.host_joined(id, wanted, out));
        if exchanges {
            state.core.host_exchanges(id);
        }
        if let Some(ends) = ends {
            state.core.host_ends(now(), id, ends);
        }
        // Earlier messages go with it. The time is taken now, because the answer may arrive before this thread
        // continues.
        let requested = monotonic_ns();
        let _ = state.hosts.push(id, &Message::Ping { number: 0 });
        self.common.finish(state);
        if let Some(peer) = self.peer(index) {
            peer.pings.push_back((0, requested));
        }
        self.common.workers_changed(None);
    }
}
