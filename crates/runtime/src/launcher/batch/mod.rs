//! Agents that a batch system starts: what is alike for all of them. A system is told in [`System`] how it
//! is asked; this asks, waits, tells what it hears, and sees that nothing stays behind.

mod asker;
mod commands;
mod desk;
mod folder;
mod refusals;
mod script;
mod watcher;

use std::collections::HashSet;
use std::fmt;
use std::path::Path;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SendError, Sender};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::agents::lock;
use super::{Event, Launcher, Report, Start};
use crate::servers::{self, Server};
use crate::sys;

pub(super) use asker::Asker;
pub(super) use commands::{Commands, Trouble, Turn};
pub(super) use folder::{Folder, Placing, text};
pub(super) use refusals::{Words, each_line_has, ended_with};
pub(super) use script::{Parts, check_skip, filled, is_left_out, patience, quoted, shell};
pub(super) use watcher::Watcher;

use desk::{Desk, Order};

/// How long the desk has to say that all is done, after what it ran has been ended.
const LEAVING: Duration = Duration::from_secs(1);

/// A batch system. Its methods run commands, and wait for them, in the desk's thread.
pub(super) trait System: fmt::Debug + Send + 'static {
    /// Submits one request for so many agents, whose tickets are in the folder under the numbers from 0 on.
    /// The job, as the system names it.
    fn submit(&mut self, turn: &Turn<'_>, what: &Wanted<'_>) -> Result<String, Trouble>;

    /// How these jobs stand. Nothing is said of those that the system does not know any longer.
    fn look(&self, commands: &Commands, jobs: &[&str]) -> Result<Vec<Seen>, Trouble>;

    /// Asks for several servers at once, if one of them can be asked for all; none: each asks for itself.
    fn asker(&self) -> Option<&'static Asker> {
        None
    }

    /// Ends jobs, or tasks of them.
    fn cancel(&self, commands: &Commands, tasks: &[Task]) -> Result<(), Trouble>;

    /// How long a job may run, where the system does not say how long that still is.
    fn wall_time(&self) -> Option<Duration> {
        None
    }

    /// How a task stands that is not among those seen any longer.
    fn gone(&self, _commands: &Commands, gone: &Gone<'_>) -> Stand {
        let job = &gone.task.job;
        Stand::Ended(format!("the batch system knows nothing of job {job} any longer"))
    }

    /// Whether a job that was taken from its node is to run again. Else it is cancelled, and another one is asked
    /// for.
    fn requeues(&self) -> bool {
        true
    }

    /// How a job was taken from its node that will run again, as what it did.
    fn requeued(&self) -> &'static str {
        "was requeued"
    }

    /// Whether the agents of one request start and end each for itself.
    fn has_tasks(&self) -> bool;

    /// What all its jobs are called; no other client's are.
    fn job_name(&self) -> &str;

    /// Commands for `sh` that end the jobs in `$jobs` and those that are called `$name`, and fail if they
    /// could not be told.
    fn cancelling(&self) -> &'static str;
}

/// What is to be submitted.
#[derive(Debug)]
pub(super) struct Wanted<'a> {
    pub(super) agents: usize,
    /// The program that becomes the agent.
    pub(super) program: &'a str,
    /// Where tickets are, and what agents write goes.
    pub(super) folder: &'a str,
}

/// A job, or one task of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Task {
    pub(super) job: String,
    /// Which of its tasks, from 0; none: all of it.
    pub(super) number: Option<usize>,
}

/// A task that the system knows nothing of any longer, and what is known of it here.
#[derive(Debug)]
pub(super) struct Gone<'a> {
    pub(super) task: &'a Task,
    /// Where it ran; empty if it was never seen to run.
    pub(super) node: &'a str,
    /// With what status its agent has ended, if the script of its job has written that down.
    pub(super) status: Option<u32>,
    /// Whether it had no time left, as far as that is known.
    pub(super) is_over: bool,
}

/// What the system says of a task.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) task: Task,
    pub(super) stand: Stand,
    /// How long it may still run, if that is known.
    pub(super) left: Option<Duration>,
    /// What the runs of a task that was requeued differ in, such as when each has begun; empty if that is not
    /// known, or it does not run.
    pub(super) run: String,
}

/// How a task stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Stand {
    /// It waits: as what, and why.
    Queued(String),
    /// It runs, or begins to: where.
    Runs(String),
    /// It has run, and has ended: how.
    Ended(String),
    /// It will never run: why.
    Refused(String),
}

/// What all jobs of a server are called. It is another name each time: without that the watcher could only
/// end jobs that it has been told of.
pub(super) fn job_name(server: &Server) -> String {
    let random = sys::random::<4>().unwrap_or_default();
    let random: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    let server_name: String = server.name.chars().map(plain).take(40).collect();
    format!("gridrpc-{server_name}-{random}")
}

/// The job script of a server for people to look at, as it would be submitted for all of its agents.
pub(super) fn printed(
    server: &Server,
    own_program: &Path,
    script: impl FnOnce(&Wanted<'_>) -> Result<String, String>,
) -> Result<String, String> {
    let placing = Placing::new(server, own_program);
    let folder = placing.folder()?.join("jobs/REQUEST").display().to_string();
    let program = match &server.program {
        Some(program) => program.clone(),
        None => placing.folder()?.join("VERSION/gridrpc").display().to_string(),
    };
    let script =
        script(&Wanted { agents: server.hosts.len(), program: &program, folder: &folder })?;
    let Some(least) = server.min_hosts else { return Ok(script) };
    let most = server.hosts.len();
    let note = format!(
        "# At first {least} of the {most} nodes are asked for, and others while calls wait for them: this is the \
         request for all\n"
    );
    // The shell is named in the first line.
    let begin = script.find('\n').filter(|_| script.starts_with("#!")).map_or(0, |end| end + 1);
    Ok(format!("{}{note}{}", &script[..begin], &script[begin..]))
}

/// How many processors an agent asks for; none: those that the site gives, or all of its node.
pub(super) fn processors_of_agent(batch: &servers::Batch, workers: u32) -> Option<u64> {
    let cores = u64::from(batch.cores.max(1));
    match workers {
        0 if batch.exclusive || batch.cores == 0 => None,
        workers => Some(u64::from(workers.max(1)) * cores),
    }
}

/// Starts agents by a batch system.
#[derive(Debug)]
pub(super) struct Batch {
    report: Report,
    patience: Duration,
    orders: Sender<Order>,
    commands: Arc<Commands>,
    /// Agents whose end will be told.
    known: Arc<Mutex<HashSet<u32>>>,
    /// Hears when the desk has closed.
    closed: Receiver<()>,
}

impl Batch {
    /// `patience`: how long all may take to end.
    pub(super) fn new(
        system: impl System,
        placing: Placing,
        patience: Duration,
        report: Report,
    ) -> Batch {
        let ((orders, received), (done, closed)) = (mpsc::channel(), mpsc::channel());
        let (commands, known) = (Arc::<Commands>::default(), Arc::default());
        let desk = Desk::new(system, placing, patience, report.clone(), &commands, &known);
        // Without a thread nobody takes orders, which is told of each agent.
        let _ = std::thread::Builder::new().name("gridrpc-batch".into()).spawn(move || {
            desk.serve(&received);
            drop(done);
        });
        Batch { report, patience, orders, commands, known, closed }
    }
}

impl Launcher for Batch {
    fn start(&mut self, starts: Vec<Start>) {
        lock(&self.known).extend(starts.iter().map(|start| start.agent));
        // The desk may be busy with what was asked for before.
        for start in &starts {
            self.report.tell(start.agent, Event::State(self.commands.submitting()));
        }
        if let Err(SendError(Order::Start(starts))) = self.orders.send(Order::Start(starts)) {
            for start in starts {
                lock(&self.known).remove(&start.agent);
                let why = "no thread could be started for the batch system".to_owned();
                self.report.tell(start.agent, Event::Failed(why));
            }
        }
    }

    fn stop(&mut self, agent: u32) {
        let _ = self.orders.send(Order::Stop(agent));
    }

    fn lost(&mut self, agent: u32) -> bool {
        lock(&self.known).contains(&agent) && self.orders.send(Order::Look(agent)).is_ok()
    }

    fn close(&mut self) {
        let _ = self.orders.send(Order::Close);
        // A channel that ends is what is waited for.
        if self.closed.recv_timeout(self.patience + LEAVING) == Err(RecvTimeoutError::Timeout) {
            // What does not answer is ended; the watcher goes on with what is left to do.
            self.commands.end();
            let _ = self.closed.recv_timeout(LEAVING);
        }
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        self.close();
    }
}
