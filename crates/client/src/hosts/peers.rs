//! The reactor's state of all hosts of a grid.

use std::collections::VecDeque;
use std::sync::Arc;

use gridrpc_core::{Time, WorkerId};
use gridrpc_link::Outbound;
use gridrpc_sys::monotonic_ns;
use gridrpc_wire::Message;

use crate::common::Common;
use crate::config::{HostGroups, RemoteWorkers};
use crate::hosts::agent_messages::Conversation;
use crate::hosts::clock::Clock;
use crate::hosts::connectors::Connectors;
use crate::hosts::dialled::DialTarget;
use crate::hosts::fetches::Fetches;
use crate::hosts::inbox::{Deliver, Inbox};
use crate::hosts::plans::{Plan, plans};

/// The reactor's state of all hosts of a grid.
#[derive(Debug)]
pub(crate) struct Hosts {
    pub(crate) first: u32,
    pub(crate) plans: Vec<Plan>,
    pub(crate) entries: Vec<HostEntry>,
    pub(crate) connectors: Connectors,
    pub(crate) inbox: Arc<Inbox>,
    pub(crate) workers: RemoteWorkers,
    /// Flow control of large answers.
    pub(crate) fetching: Fetches,
    /// Number of agents requested so far.
    pub(crate) agents: u32,
}

#[derive(Debug)]
pub(crate) struct HostEntry {
    /// Number of connections that this host has had.
    pub(crate) generation: u32,
    /// The agent that was requested and has not ended.
    pub(crate) agent: Option<u32>,
    pub(crate) stage: Stage,
    /// Progress of its start, as the launcher reports it.
    pub(crate) state: String,
    /// How its agent ended, if the launcher reported that before the connection closed.
    pub(crate) ended: Option<String>,
    /// When its agent will be ended, if the launcher knows.
    pub(crate) ends: Option<Time>,
    /// Last output of the agent and its launcher.
    pub(crate) said: Vec<u8>,
}

#[derive(Debug)]
pub(crate) enum Stage {
    Absent,
    /// Its agent has been requested and has not dialled.
    Asked,
    There(Box<Peer>),
    /// Its agent is gone, and the launcher may report the reason in time.
    Left(Box<LostPeer>),
}

/// A host whose agent is gone.
#[derive(Debug)]
pub(crate) struct LostPeer {
    /// Reason to report if the launcher does not report one.
    pub(crate) why: String,
    /// The name that the host reported.
    pub(crate) host: String,
    pub(crate) pid: u32,
}

/// An agent that has dialled.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) conversation: Conversation,
    pub(crate) up: Arc<Outbound>,
    /// The name that the host reported.
    pub(crate) host: String,
    pub(crate) pid: u32,
    pub(crate) joined: bool,
    /// Whether it holds back large answers until they are fetched.
    pub(crate) holds: bool,
    /// Time of the last data from it.
    pub(crate) heard: Time,
    /// Time of the last ping to it.
    pub(crate) requested: Time,
    /// Time of the last sign of life to it.
    pub(crate) spoke: Time,
    /// Whether it has answered calls since the last ping to it.
    pub(crate) has_answered: bool,
    /// Unanswered pings: number and time sent, ns.
    pub(crate) pings: VecDeque<(u64, u64)>,
    pub(crate) pinged: u64,
    /// The shortest round-trip time so far, ns.
    pub(crate) round_trip: u64,
    pub(crate) clock: Clock,
}

impl Peer {
    /// Sends a ping, which checks that the host is there and reads its clock.
    pub(crate) fn ask(&mut self) {
        self.pinged += 1;
        let number = self.pinged;
        self.pings.push_back((number, monotonic_ns()));
        if self.up.push(&Message::Ping { number }).is_ok() {
            self.up.flush();
        }
    }
}

impl Hosts {
    pub(crate) fn new(groups: HostGroups, first: u32, common: &Arc<Common>) -> Hosts {
        let HostGroups { list, program, workers } = groups;
        let plans = plans(&list);
        let inbox = Arc::<Inbox>::default();
        let deliver = Deliver::to(Arc::clone(&inbox), Arc::clone(common));
        let connectors = Connectors::new(list, &program, &deliver);
        let entry = |_: &Plan| HostEntry {
            generation: 0,
            agent: None,
            stage: Stage::Absent,
            state: String::new(),
            ended: None,
            ends: None,
            said: Vec::new(),
        };
        let entries = plans.iter().map(entry).collect();
        let fetching = Fetches::default();
        Hosts { first, plans, entries, connectors, inbox, workers, fetching, agents: 0 }
    }

    pub(crate) fn index(&self, id: WorkerId) -> Option<usize> {
        let index = id.0.checked_sub(self.first)? as usize;
        (index < self.entries.len()).then_some(index)
    }

    pub(crate) fn id(&self, index: usize) -> WorkerId {
        WorkerId(self.first + index as u32)
    }

    /// The session or server that is this host; none: its agent is started.
    pub(crate) fn dialled(&self, index: usize) -> Option<DialTarget<'_>> {
        DialTarget::of(&self.connectors.group(&self.plans[index]).launcher)
    }

    /// Whether this executor is one of the hosts.
    pub(crate) fn has(&self, id: WorkerId) -> bool {
        self.index(id).is_some()
    }

    /// Whether all agents are gone.
    pub(crate) fn are_gone(&self) -> bool {
        self.entries.iter().all(|entry| matches!(entry.stage, Stage::Absent))
    }
}

/// A host's name in the configuration, and the name that it reports if that differs.
pub(crate) fn called(name: &str, host: &str) -> String {
    match (name, host) {
        ("", host) => host.to_owned(),
        (name, host) if host == name || host.is_empty() => name.to_owned(),
        _ => format!("{name} ({host})"),
    }
}
