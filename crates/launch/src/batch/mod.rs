//! Agents in batch jobs: the part that all batch systems share. A [`System`] defines the commands of one
//! batch system; this module runs them, waits, reports events, and cleans up.

mod commands;
mod error_hints;
mod folder;
mod job_tracker;
mod script;
mod status_query;
mod system;
mod task;
mod watcher;

use std::collections::HashSet;
use std::path::Path;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SendError, Sender};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use gridrpc_config::HostGroup;
use gridrpc_sys::lock;

use crate::launcher::{Event, Launcher, Report, Start};
use job_tracker::{JobTracker, Order};

pub(crate) use commands::{Commands, Failure, Submission, prefixed};
pub(crate) use error_hints::{ErrorHints, each_line_has, ended_with};
pub(crate) use folder::{FilePlacement, Folder, text};
pub(crate) use script::{
    Parts, check_skip, filled, is_left_out, quoted, recorded, shell, timeout_option,
};
pub(crate) use status_query::StatusQuery;
pub(crate) use system::System;
pub(crate) use task::{JobRequest, JobState, Task, TaskStatus, VanishedTask};
pub(crate) use watcher::Watcher;

/// How long the tracker may take to finish once its command has been ended.
const LEAVING: Duration = Duration::from_secs(1);

/// The name of all jobs of a group. It is different each time, so that the watcher also finds jobs whose
/// numbers it has not received.
pub(super) fn job_name(group: &HostGroup) -> String {
    let random = gridrpc_sys::random::<4>().unwrap_or_default();
    let random: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    let group_name: String = group.name.chars().map(plain).take(40).collect();
    format!("gridrpc-{group_name}-{random}")
}

/// The job script of a group for users to read, as it would be submitted for all agents.
pub(super) fn printed(
    group: &HostGroup,
    own_program: &Path,
    script: impl FnOnce(&JobRequest<'_>) -> Result<String, String>,
) -> Result<String, String> {
    let placing = FilePlacement::new(group, own_program);
    let folder = placing.folder()?.join("jobs/REQUEST").display().to_string();
    let program = match &group.program {
        Some(program) => program.clone(),
        None => placing.folder()?.join("VERSION/gridrpc").display().to_string(),
    };
    let script =
        script(&JobRequest { agents: group.hosts.len(), program: &program, folder: &folder })?;
    let Some(least) = group.min_hosts else { return Ok(script) };
    let most = group.hosts.len();
    let note = format!(
        "# Requests {least} of the {most} nodes at first, and more while calls wait: this is the request for all\n"
    );
    // The first line names the shell.
    let begin = script.find('\n').filter(|_| script.starts_with("#!")).map_or(0, |end| end + 1);
    Ok(format!("{}{note}{}", &script[..begin], &script[begin..]))
}

/// Number of processors an agent requests; none: the site's default, or the whole node.
pub(super) fn processors_of_agent(batch: &gridrpc_config::Batch, workers: u32) -> Option<u64> {
    let cores = u64::from(batch.cores.max(1));
    match workers {
        0 if batch.exclusive || batch.cores == 0 => None,
        workers => Some(u64::from(workers.max(1)) * cores),
    }
}

/// Launcher that uses a batch system.
#[derive(Debug)]
pub(super) struct Batch {
    report: Report,
    stop_timeout: Duration,
    orders: Sender<Order>,
    commands: Arc<Commands>,
    /// Agents whose end has yet to be reported.
    known: Arc<Mutex<HashSet<u32>>>,
    /// Disconnects when the tracker has closed.
    closed: Receiver<()>,
}

impl Batch {
    /// `timeout_option`: how long closing may take.
    pub(super) fn new(
        system: impl System,
        placing: FilePlacement,
        stop_timeout: Duration,
        report: Report,
    ) -> Batch {
        let ((orders, received), (done, closed)) = (mpsc::channel(), mpsc::channel());
        let (commands, known) = (Arc::<Commands>::default(), Arc::default());
        let tracker =
            JobTracker::new(system, placing, stop_timeout, report.clone(), &commands, &known);
        // Without the thread, orders fail, which is reported for each agent.
        let _ = std::thread::Builder::new().name("gridrpc-batch".into()).spawn(move || {
            tracker.serve(&received);
            drop(done);
        });
        Batch { report, stop_timeout, orders, commands, known, closed }
    }
}

impl Launcher for Batch {
    fn start(&mut self, starts: Vec<Start>) {
        lock(&self.known).extend(starts.iter().map(|start| start.agent));
        // The tracker may still be busy with earlier orders.
        for start in &starts {
            self.report.notify(start.agent, Event::State(self.commands.submitting()));
        }
        if let Err(SendError(Order::Start(starts))) = self.orders.send(Order::Start(starts)) {
            for start in starts {
                lock(&self.known).remove(&start.agent);
                let why = "no thread could be started for the batch system".to_owned();
                self.report.notify(start.agent, Event::Failed(why));
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
        // Wait for the channel to disconnect.
        if self.closed.recv_timeout(self.stop_timeout + LEAVING) == Err(RecvTimeoutError::Timeout) {
            // End the command that does not answer; the watcher does the rest.
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
