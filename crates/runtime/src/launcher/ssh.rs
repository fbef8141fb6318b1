//! Agents on other hosts, by the system's ssh: so the user's configuration of it holds, with its keys,
//! agents, jump hosts and control sockets.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use super::agents::{Agent, Agents, NotSpawned, never_started};
use super::child::tie;
use super::ssh_process::SshProcess;
use super::staging::{self, Source, Staged};
use super::{Event, Launcher, Report, Start};
use crate::servers::Server;

/// How many hosts are connected to at once: more would keep this machine busy with handshakes, and
/// a jump host would refuse them.
const AT_ONCE: usize = 32;
/// How many signs of life of a host may be missed.
const MISSED: u64 = 3;

/// Starts agents by ssh, one process of it for each host.
#[derive(Debug)]
pub(super) struct Ssh {
    agents: Arc<Agents>,
    how: Arc<How>,
    patience: Duration,
}

/// What is alike for all hosts of a server.
#[derive(Debug)]
pub(super) struct How {
    pub(super) command: Vec<String>,
    /// The program there; none: this machine's is copied.
    program: Option<String>,
    staging: Option<String>,
    pub(super) source: Source,
    /// Whether the owner says where agents are to dial.
    pub(super) addresses_are_named: bool,
    /// Seconds between signs of life.
    interval: u64,
}

impl Ssh {
    pub(super) fn new(server: &Server, command: &[String], own: &Path, report: Report) -> Ssh {
        let how = How {
            command: command.to_vec(),
            program: server.program.clone(),
            staging: server.staging.clone(),
            source: Source::new(own),
            addresses_are_named: !server.addresses.is_empty(),
            interval: (server.heartbeat.as_secs() / MISSED).max(1),
        };
        let agents = Agents::new(report, AT_ONCE);
        Ssh { agents, how: Arc::new(how), patience: server.stop_timeout }
    }
}

impl Launcher for Ssh {
    fn start(&mut self, starts: Vec<Start>) {
        for start in starts {
            let (how, agents) = (Arc::clone(&self.how), Arc::clone(&self.agents));
            self.agents.run(start, move |agent, start| run(&agents, agent, &how, &start));
        }
    }

    fn stop(&mut self, agent: u32) {
        self.agents.stop(agent, self.patience);
    }

    fn close(&mut self) {
        self.agents.close(self.patience);
    }
}

/// Starts an agent and waits for its end.
fn run(agents: &Agents, agent: &Arc<Agent>, how: &How, start: &Start) -> Event {
    let host = &start.host;
    if host.is_empty() || host.starts_with('-') {
        // ssh would take it for an option.
        return Event::Failed(format!("`{host}` cannot be a host's name"));
    }
    let permit = agents.permits.try_take().or_else(|| {
        agent.tell(Event::State("waits until others have been connected to".into()));
        agents.permits.take(|| !agent.is_stopped())
    });
    let Some(permit) = permit else { return never_started() };
    let staged = match how.staged() {
        Ok(staged) => staged,
        Err(why) => return Event::Failed(why),
    };
    // Tells this from all others, also on hosts that share a folder. The secret itself is for the agent.
    let attempt = blake3::hash(&start.ticket.secret).to_hex()[..16].to_owned();
    let script = staging::script(&staged, &attempt);
    let Some(mut command) = how.command(start, &staging::command(&script)) else {
        return Event::Failed("no command is named for ssh".into());
    };
    agent.tell(Event::State("connects by ssh".into()));
    match agent.spawn(&mut command) {
        Ok((child, pipes)) => SshProcess::new(agent, how, start, script, child, pipes).run(permit),
        Err(NotSpawned::Stopped) => never_started(),
        Err(NotSpawned::Refused(error)) => Event::Failed(format!(
            "`{}` could not be started: {error}; see that OpenSSH's client is installed on this \
             machine",
            how.command.join(" ")
        )),
    }
}

impl How {
    /// Where the program of the hosts comes from.
    fn staged(&self) -> Result<Staged<'_>, String> {
        if let Some(program) = &self.program {
            return Ok(Staged::There(program));
        }
        let program = self.source.program()?;
        Ok(Staged::Copied { folder: self.staging.as_deref(), program })
    }

    fn command(&self, start: &Start, remote: &str) -> Option<Command> {
        let (name, own) = self.command.split_first()?;
        let mut command = Command::new(name);
        // The first to set an option is who sets it: the user's command, then this, then files.
        command.args(own).arg("-T");
        let mut option = |option: &str| {
            command.args(["-o", option]);
        };
        // Nobody is there to be asked.
        option("BatchMode=yes");
        option("ConnectTimeout=10");
        option(&format!("ServerAliveInterval={}", self.interval));
        option(&format!("ServerAliveCountMax={MISSED}"));
        // A way back is welcome, not needed; what port it has is told at this level.
        option("ExitOnForwardFailure=no");
        option("LogLevel=INFO");
        // One that is there is used, but other sessions would end with this one if they went through it.
        option("ControlMaster=no");
        command.args(way_back(start).iter().flatten());
        command.arg(&start.host).arg(remote);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        tie(&mut command);
        Some(command)
    }
}

impl How {
    /// Takes the way back out of a connection that the user shares among sessions, and that would keep its port
    /// on the host open. Where there is none, ssh says so at once.
    pub(super) fn cancel_way_back(&self, start: &Start) {
        let Some((name, own)) = self.command.split_first() else { return };
        let is_ssh = Path::new(name).file_name().is_some_and(|name| name == "ssh");
        let Some(way_back) = way_back(start).filter(|_| is_ssh) else { return };
        let mut command = Command::new(name);
        command.args(own).args(["-o", "BatchMode=yes", "-O", "cancel"]).args(way_back);
        command.arg(&start.host).process_group(0);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        // Without ssh there was no connection either.
        let _ = command.status();
    }
}

/// How ssh is told to forward a port of the host, any that is free, to the client's.
fn way_back(start: &Start) -> Option<[String; 2]> {
    Some(["-R".into(), format!("0:127.0.0.1:{}", door(start)?)])
}

/// The port that the client listens on.
pub(super) fn door(start: &Start) -> Option<u16> {
    start.ticket.addresses.first()?.rsplit_once(':')?.1.parse().ok()
}
