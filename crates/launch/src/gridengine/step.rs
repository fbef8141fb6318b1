//! Agents in the current job: a shell starts the one on this host, `qrsh -inherit` those on the other hosts
//! of the parallel environment.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use gridrpc_config::{BatchSystem, HostGroup, Node};
use gridrpc_sys::lock;
use gridrpc_sys::process::end_with_parent;

use crate::agents::{Agent, Agents, NotSpawned, never_started};
use crate::batch::{FilePlacement, Folder, Watcher, quoted, text};
use crate::child::how;
use crate::launcher::{COPIES, Event, Launcher, Report, Start};
use crate::local::{REST, report_lines};

/// Launcher that starts agents in the current job.
#[derive(Debug)]
pub(super) struct Step {
    agents: Arc<Agents>,
    place: Arc<NodeFiles>,
    nodes: Vec<Node>,
    stop_timeout: Duration,
}

/// Files that nodes read.
#[derive(Debug)]
struct NodeFiles {
    placing: FilePlacement,
    folder: Mutex<Option<(Folder, Watcher)>>,
}

impl Step {
    pub(super) fn new(group: &HostGroup, placing: FilePlacement, report: Report) -> Step {
        Step {
            agents: Agents::new(report, usize::MAX),
            place: Arc::new(NodeFiles { placing, folder: Mutex::new(None) }),
            nodes: BatchSystem::GridEngine.allocation(),
            stop_timeout: group.stop_timeout,
        }
    }
}

impl Launcher for Step {
    fn start(&mut self, starts: Vec<Start>) {
        for start in starts {
            let node = self.nodes.iter().find(|node| node.name == start.host).cloned();
            let (place, count) = (Arc::clone(&self.place), self.nodes.len());
            self.agents.run(start, move |agent, start| match node {
                Some(node) => place.run(agent, &node, &start),
                None => Event::Failed(elsewhere(count)),
            });
        }
    }

    fn stop(&mut self, agent: u32) {
        self.agents.stop(agent, self.stop_timeout);
    }

    fn close(&mut self) {
        self.agents.close(self.stop_timeout);
        if let Some((folder, watcher)) = lock(&self.place.folder).take() {
            let _ = std::fs::remove_dir_all(folder.path());
            watcher.done();
        }
    }
}

impl Drop for Step {
    fn drop(&mut self) {
        self.close();
    }
}

/// Why an agent has no place in this job of `count` hosts.
fn elsewhere(count: usize) -> String {
    match count {
        0 => "this program is not part of a job of Grid Engine, in which it could start agents: write another \
              `request`"
            .to_owned(),
        count => format!(
            "the job that this program is part of has {count} hosts and no more: ask for fewer `nodes`"
        ),
    }
}

impl NodeFiles {
    /// Starts an agent and waits for its end.
    fn run(&self, agent: &Arc<Agent>, node: &Node, start: &Start) -> Event {
        let tell = || agent.notify(Event::State(COPIES.to_owned()));
        let tickets = match self.put(start) {
            Ok(tickets) => tickets,
            Err(why) => return Event::Failed(why),
        };
        let command =
            self.placing.program(tell).and_then(|program| command(&program, &tickets, node));
        let mut command = match command {
            Ok(command) => command,
            Err(why) => return Event::Failed(why),
        };
        agent.notify(Event::State(format!("is starting on {}", node.name)));
        let (child, mut pipes) = match agent.spawn(&mut command) {
            Ok(spawned) => spawned,
            Err(NotSpawned::Stopped) => return never_started(),
            Err(NotSpawned::Refused(error)) => {
                let name = command.get_program().to_string_lossy();
                return Event::Failed(format!("`{name}` could not be started: {error}"));
            }
        };
        let said = pipes.stderr.take().map(|stderr| report_lines(agent, stderr));
        let status = child.wait();
        if let Some(said) = said {
            let _ = said.recv_timeout(REST);
        }
        let _ = std::fs::remove_dir_all(&tickets);
        Event::Ended(how(status))
    }

    /// Writes the ticket of an agent, as number 0, and returns its folder.
    fn put(&self, start: &Start) -> Result<PathBuf, String> {
        let mut folder = lock(&self.folder);
        let (folder, _) = match &mut *folder {
            Some(both) => both,
            none => {
                let folder = self.placing.open()?;
                // Agents end with the client; the watcher only removes the folder.
                let watcher = Watcher::start(":", "", folder.path(), &[]).map_err(|error| {
                    format!("the process that removes the tickets could not be started: {error}")
                })?;
                none.insert((folder, watcher))
            }
        };
        folder.put(std::iter::once(("0".to_owned(), &start.ticket)))
    }
}

/// The command that becomes the agent on a node.
fn command(program: &str, tickets: &Path, node: &Node) -> Result<Command, String> {
    let mut run = format!("exec {} agent --ticket {}/0", quoted(program), quoted(&text(tickets)?));
    if let Some(processors) = node.processors {
        run.push_str(&format!(" --processors {processors}"));
    }
    let is_here = std::env::var("HOSTNAME").is_ok_and(|here| here == node.name);
    let mut command = Command::new(if is_here { "sh" } else { "qrsh" });
    match is_here {
        true => command.args(["-c", &run]),
        // A shell on the node parses the line.
        false => command.args(["-inherit", "-nostdin", "-V", &node.name, &run]),
    };
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    end_with_parent(&mut command);
    Ok(command)
}
