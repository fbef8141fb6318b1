//! Local launcher: agents are children of the client.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{ChildStderr, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use gridrpc_config::HostGroup;

use super::agents::{Agent, Agents, NotSpawned, never_started};
use super::child::how;
use super::lines::Lines;
use crate::launcher::{Event, Launcher, Report, Start};

/// How long to wait for the rest of an ended agent's output: a process that it left behind may hold the pipe
/// open.
pub(super) const REST: Duration = Duration::from_millis(500);

/// Launcher for local agents.
#[derive(Debug)]
pub(super) struct Local {
    agents: Arc<Agents>,
    /// Prefix, program and arguments.
    command: Arc<[OsString]>,
    stop_timeout: Duration,
}

impl Local {
    pub(super) fn new(
        group: &HostGroup,
        prefix: &[String],
        program: &Path,
        report: Report,
    ) -> Local {
        let named = group.program.as_ref().map(OsString::from);
        let program = named.unwrap_or_else(|| program.as_os_str().to_owned());
        let command = prefix.iter().map(OsString::from).chain([program, "agent".into()]);
        Local {
            agents: Agents::new(report, usize::MAX),
            command: command.collect(),
            stop_timeout: group.stop_timeout,
        }
    }
}

impl Launcher for Local {
    fn start(&mut self, starts: Vec<Start>) {
        for start in starts {
            let command = Arc::clone(&self.command);
            self.agents.run(start, move |agent, start| run(agent, &command, &start));
        }
    }

    fn stop(&mut self, agent: u32) {
        self.agents.stop(agent, self.stop_timeout);
    }

    fn close(&mut self) {
        self.agents.close(self.stop_timeout);
    }
}

/// Starts an agent and waits for its end.
fn run(agent: &Arc<Agent>, command: &[OsString], start: &Start) -> Event {
    let mut to_run = Command::new(&command[0]);
    to_run.args(&command[1..]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let (child, mut pipes) = match agent.spawn(&mut to_run) {
        Ok(spawned) => spawned,
        Err(NotSpawned::Stopped) => return never_started(),
        Err(NotSpawned::Refused(error)) => return Event::Failed(refused(command, &error)),
    };
    let said = pipes.stderr.take().map(|stderr| report_lines(agent, stderr));
    if let Some(stdin) = &mut pipes.stdin {
        // An agent that does not read its ticket has ended; its status says why.
        let _ = stdin.write_all(format!("{}\n", start.ticket.encode()).as_bytes());
    }
    let status = child.wait();
    if let Some(said) = said {
        // Returns when the thread has ended, or after the timeout.
        let _ = said.recv_timeout(REST);
    }
    Event::Ended(how(status))
}

fn refused(command: &[OsString], error: &std::io::Error) -> String {
    let program = command[0].to_string_lossy();
    format!(
        "`{program}` could not be started on this machine: {error}; see that it is there and \
         may be run"
    )
}

/// Reports an agent's standard error line by line. The receiver disconnects at its end.
pub(super) fn report_lines(agent: &Arc<Agent>, mut stderr: ChildStderr) -> Receiver<()> {
    let (done, all) = mpsc::channel();
    let agent = Arc::clone(agent);
    // Without a thread the output is not reported, and nobody reads the pipe.
    let _ = std::thread::Builder::new().name("gridrpc-said".into()).spawn(move || {
        let (mut lines, mut piece) = (Lines::default(), vec![0; 8 << 10]);
        let tell = |line: &[u8]| agent.notify(Event::Said(line.to_vec()));
        while let Ok(read @ 1..) = stderr.read(&mut piece) {
            lines.push(&piece[..read], tell);
        }
        lines.end(tell);
        drop(done);
    });
    all
}
