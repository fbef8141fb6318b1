//! The launcher trait and its events.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use gridrpc_transport::Ticket;

/// An agent to start.
#[derive(Clone, Debug)]
pub struct Start {
    /// The client's number for it, used in events.
    pub agent: u32,
    /// The host's name in the configuration.
    pub host: String,
    /// The agent's ticket. A launcher that provides another route to the client adds its address.
    pub ticket: Ticket,
}

/// State of an agent while the program is copied to its host.
pub const COPIES: &str = "copies the program";

/// Prefix of the state of an agent whose job is queued.
pub const QUEUED: &str = "is queued";

/// Prefix of the state of an agent whose job the batch system has not accepted yet.
pub const SUBMITTED: &str = "is being submitted";

/// Prefix of the state of an agent whose job's status query failed.
pub const UNANSWERED: &str = "cannot be asked after";

/// An event of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Progress of its start, for display: "waits in the queue", "copies the program".
    State(String),
    /// Its process will be ended after this time, for example when its job reaches the wall time.
    EndsIn(Duration),
    /// It failed to start: the reason, and how to fix it.
    Failed(String),
    /// It started, and its process has ended: how.
    Ended(String),
    /// A line that the agent or its launcher wrote to standard error, with the line end if there is one.
    Said(Vec<u8>),
}

/// Callback for events: the agent's number and the event. Any thread may call it. It returns at once and does
/// not call the launcher.
#[derive(Clone)]
pub struct Report(pub Arc<dyn Fn(u32, Event) + Send + Sync>);

impl Report {
    /// Reports an event of an agent.
    pub fn notify(&self, agent: u32, event: Event) {
        (self.0)(agent, event);
    }
}

/// Closes launchers in parallel.
pub fn close_all(launchers: Vec<Box<dyn Launcher>>) {
    let count = launchers.len();
    let left = Mutex::new(launchers);
    let next = || left.lock().unwrap_or_else(PoisonError::into_inner).pop();
    let close = || {
        while let Some(mut launcher) = next() {
            launcher.close();
        }
    };
    thread::scope(|scope| {
        for _ in 1..count {
            // If the system refuses a thread, the other threads take over its launchers.
            let _ = thread::Builder::new().spawn_scoped(scope, close);
        }
        close();
    });
}

impl fmt::Debug for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Report")
    }
}

/// Starts and stops agents. No method blocks, except [`close`](Launcher::close): the launcher's own threads
/// do the work and send events to its [`Report`]. `Failed` or `Ended` is the last event of an agent; its
/// number may be reused afterwards.
pub trait Launcher: fmt::Debug + Send {
    /// Starts agents, all in one request.
    fn start(&mut self, starts: Vec<Start>);

    /// Stops an agent that runs or is starting. An event reports its end.
    fn stop(&mut self, agent: u32);

    /// Handles the loss of a connected agent. Returns whether an `Ended` event will soon give the cause,
    /// which the connection cannot tell.
    fn lost(&mut self, _agent: u32) -> bool {
        false
    }

    /// Stops all agents and waits for that, up to the group's `stop_timeout`.
    fn close(&mut self);
}
