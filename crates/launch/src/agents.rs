//! Agents of a launcher that runs one process per agent.

use std::collections::HashMap;
use std::io;
use std::process::{ChildStdin, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use gridrpc_sys::lock;

use super::child::{Child, Pipes};
use super::permits::Permits;
use crate::launcher::{Event, Report, Start};

/// How long killed processes may take to exit.
const DYING: Duration = Duration::from_secs(1);
/// Stack size of an agent's thread; a client may have thousands.
const STACK: usize = 256 << 10;

/// An agent that runs or is starting.
#[derive(Debug)]
pub(super) struct Agent {
    number: u32,
    report: Report,
    stopped: AtomicBool,
    process: Mutex<Option<Arc<Child>>>,
    /// Standard input of an agent that exits when it is closed.
    input: Mutex<Option<ChildStdin>>,
    /// Whether its end has been reported: another agent may then reuse its number.
    over: Mutex<bool>,
}

/// Reason an agent has no process.
#[derive(Debug)]
pub(super) enum NotSpawned {
    /// It was stopped first.
    Stopped,
    /// The system refused to start it.
    Refused(io::Error),
}

impl Agent {
    /// Reports an event of the agent.
    pub(super) fn notify(&self, event: Event) {
        let over = lock(&self.over);
        if !*over {
            self.report.notify(self.number, event);
        }
    }

    /// Whether it has been stopped.
    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    /// Starts its process; the process exits if the agent is stopped.
    pub(super) fn spawn(&self, command: &mut Command) -> Result<(Arc<Child>, Pipes), NotSpawned> {
        let mut process = lock(&self.process);
        if self.is_stopped() {
            return Err(NotSpawned::Stopped);
        }
        let (child, pipes) = Child::spawn(command).map_err(NotSpawned::Refused)?;
        *process = Some(Arc::clone(&child));
        Ok((child, pipes))
    }

    /// Keeps its standard input open. Stopping the agent closes it.
    pub(super) fn keep(&self, stdin: ChildStdin) {
        let mut input = lock(&self.input);
        if !self.is_stopped() {
            *input = Some(stdin);
        }
    }

    /// Stops it and returns its process, if there is one.
    fn stop(&self) -> Option<Stopping> {
        let process = lock(&self.process);
        self.stopped.store(true, Ordering::Release);
        let input_closed = lock(&self.input).take().is_some();
        process.clone().map(|child| Stopping { child, input_closed })
    }
}

/// The process of an agent that is being stopped.
#[derive(Debug)]
struct Stopping {
    child: Arc<Child>,
    /// Whether closing standard input tells the agent to exit: it then gets some time before its process is
    /// signalled.
    input_closed: bool,
}

/// All agents of a launcher.
#[derive(Debug)]
pub(super) struct Agents {
    report: Report,
    table: Mutex<Table>,
    fewer: Condvar,
    /// Limits how many agents start at once.
    pub(super) permits: Permits,
}

#[derive(Debug, Default)]
struct Table {
    agents: HashMap<u32, Arc<Agent>>,
    /// Threads that have not yet reported the end of their agents.
    threads: usize,
}

impl Agents {
    /// `at_once`: the number of permits.
    pub(super) fn new(report: Report, at_once: usize) -> Arc<Agents> {
        let (table, fewer) = (Mutex::default(), Condvar::new());
        Arc::new(Agents { report, table, fewer, permits: Permits::new(at_once) })
    }

    /// Starts an agent in a thread of its own. `run` returns when the agent has ended.
    pub(super) fn run(
        self: &Arc<Agents>,
        start: Start,
        run: impl FnOnce(&Arc<Agent>, Start) -> Event + Send + 'static,
    ) {
        let number = start.agent;
        let agent = Arc::new(Agent {
            number,
            report: self.report.clone(),
            stopped: AtomicBool::new(false),
            process: Mutex::new(None),
            input: Mutex::new(None),
            over: Mutex::new(false),
        });
        {
            let mut table = lock(&self.table);
            table.agents.insert(number, Arc::clone(&agent));
            table.threads += 1;
        }
        let (agents, its) = (Arc::clone(self), Arc::clone(&agent));
        let thread = std::thread::Builder::new().name("gridrpc-agent".into()).stack_size(STACK);
        let started = thread.spawn(move || {
            let end = run(&its, start);
            agents.end(&its, end);
        });
        if let Err(error) = started {
            self.end(&agent, Event::Failed(format!("no thread could be started for it: {error}")));
        }
    }

    /// Reports the end of an agent and forgets it.
    fn end(&self, agent: &Agent, event: Event) {
        // Before the report: a new agent may reuse the number right after it.
        lock(&self.table).agents.remove(&agent.number);
        {
            let mut over = lock(&agent.over);
            *over = true;
            agent.report.notify(agent.number, event);
        }
        lock(&self.table).threads -= 1;
        self.fewer.notify_all();
    }

    /// Stops an agent, within `timeout_option` at most.
    pub(super) fn stop(&self, number: u32, stop_timeout: Duration) {
        let agent = lock(&self.table).agents.get(&number).cloned();
        let stopping = agent.and_then(|agent| agent.stop());
        self.permits.wake();
        if let Some(Stopping { child, input_closed }) = stopping {
            let first = if input_closed { leave(stop_timeout) } else { Duration::ZERO };
            child.end_soon(first, stop_timeout);
        }
    }

    /// Stops all agents, within `timeout_option` at most.
    pub(super) fn close(&self, stop_timeout: Duration) {
        let begin = Instant::now();
        let agents: Vec<Arc<Agent>> = lock(&self.table).agents.values().cloned().collect();
        let all: Vec<Stopping> = agents.iter().filter_map(|agent| agent.stop()).collect();
        self.permits.wake();
        all.iter()
            .filter(|stopping| !stopping.input_closed)
            .for_each(|stopping| stopping.child.ask());
        if all.iter().any(|stopping| stopping.input_closed)
            && !self.are_gone_before(begin + leave(stop_timeout))
        {
            all.iter().for_each(|stopping| stopping.child.ask());
        }
        if !self.are_gone_before(begin + stop_timeout) {
            all.iter().for_each(|stopping| stopping.child.kill());
            self.are_gone_before(Instant::now() + DYING);
        }
    }

    fn are_gone_before(&self, until: Instant) -> bool {
        let left = until.saturating_duration_since(Instant::now());
        let some = |table: &mut Table| table.threads > 0;
        let waited = self.fewer.wait_timeout_while(lock(&self.table), left, some);
        waited.unwrap_or_else(PoisonError::into_inner).0.threads == 0
    }
}

/// How long an agent that was asked to exit has before its process is signalled.
fn leave(stop_timeout: Duration) -> Duration {
    stop_timeout * 2 / 3
}

/// The event for an agent that was stopped before it had a process.
pub(super) fn never_started() -> Event {
    Event::Ended("it was stopped before it had started".to_owned())
}
