//! What a launcher does, and what it reports.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use gridrpc_transport::Ticket;

/// An agent that is to be started.
#[derive(Clone, Debug)]
pub struct Start {
    /// The client's number for it: events name it.
    pub agent: u32,
    /// The host, as the configuration names it.
    pub host: String,
    /// What the agent is to be given. A launcher that opens another way to the client adds its address.
    pub ticket: Ticket,
}

/// How far the start of an agent has come whose host does not have the program.
pub const COPIES: &str = "copies the program";

/// How what a launcher tells begins of an agent that waits in a queue.
pub const QUEUED: &str = "is queued";

/// The same of an agent whose batch system has not said yet that it takes its job.
pub const SUBMITTED: &str = "is being submitted";

/// The same of an agent after whose job the batch system could not be asked.
pub const UNANSWERED: &str = "cannot be asked after";

/// What has become of an agent that was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// How far its start has come, for people: "waits in the queue", "copies the program".
    State(String),
    /// Its process will be ended in so long, as that of a job that reaches its wall time.
    EndsIn(Duration),
    /// It could not be started: why, with what to do about it.
    Failed(String),
    /// It was started, and its process has ended: how.
    Ended(String),
    /// It has written this to its standard error, or its launcher has: a line, with its end if it has one.
    Said(Vec<u8>),
}

/// Where events go: the agent's number, and what has happened. Called in any thread; returns at once, and
/// does not call the launcher.
#[derive(Clone)]
pub struct Report(pub Arc<dyn Fn(u32, Event) + Send + Sync>);

impl Report {
    /// Tells what has become of an agent.
    pub fn tell(&self, agent: u32, event: Event) {
        (self.0)(agent, event);
    }
}

/// Closes launchers side by side.
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
            // If the system refuses a thread, the others close more.
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

/// Starts agents and ends them. No method waits: what takes time happens in threads of its own, and what
/// comes of it goes to the [`Report`] that the launcher was made with. After `Failed` or `Ended` nothing
/// more is told of an agent, and its number may be used again.
pub trait Launcher: fmt::Debug + Send {
    /// Asks for agents, all in one request.
    fn start(&mut self, starts: Vec<Start>);

    /// Ends an agent that is there, or on its way; the event says when it has ended.
    fn stop(&mut self, agent: u32);

    /// An agent is gone that had reached its client. Whether `Ended` will say soon how that came, which its
    /// connection cannot tell.
    fn lost(&mut self, _agent: u32) -> bool {
        false
    }

    /// Ends all agents, and waits for that, at most as long as the group's `stop_timeout`.
    fn close(&mut self);
}
