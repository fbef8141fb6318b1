//! Launcher for the system's ssh. The user's ssh configuration applies, with keys, agents, jump hosts and
//! control sockets.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use gridrpc_config::HostGroup;

use super::agents::{Agent, Agents, NotSpawned, never_started};
use super::ssh_command::{MISSED, SshCommand};
use super::ssh_process::SshProcess;
use super::staging::{self, Source};
use crate::launcher::{Event, Launcher, Report, Start};

/// How many hosts connect at once: more would keep this machine busy with handshakes, and a jump host would
/// refuse them.
const AT_ONCE: usize = 32;
/// Launcher that runs one ssh process per host.
#[derive(Debug)]
pub(super) struct Ssh {
    agents: Arc<Agents>,
    how: Arc<SshCommand>,
    stop_timeout: Duration,
}

impl Ssh {
    pub(super) fn new(group: &HostGroup, command: &[String], own: &Path, report: Report) -> Ssh {
        let how = SshCommand {
            command: command.to_vec(),
            program: group.program.clone(),
            staging: group.staging.clone(),
            source: Source::new(own),
            addresses_are_named: !group.addresses.is_empty(),
            interval: (group.heartbeat.as_secs() / MISSED).max(1),
        };
        let agents = Agents::new(report, AT_ONCE);
        Ssh { agents, how: Arc::new(how), stop_timeout: group.stop_timeout }
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
        self.agents.stop(agent, self.stop_timeout);
    }

    fn close(&mut self) {
        self.agents.close(self.stop_timeout);
    }
}

/// Starts an agent and waits for its end.
fn run(agents: &Agents, agent: &Arc<Agent>, how: &SshCommand, start: &Start) -> Event {
    let host = &start.host;
    if host.is_empty() || host.starts_with('-') {
        // ssh would parse it as an option.
        return Event::Failed(format!("`{host}` cannot be a host's name"));
    }
    let permit = agents.permits.try_take().or_else(|| {
        agent.notify(Event::State("waits until others have been connected to".into()));
        agents.permits.take(|| !agent.is_stopped())
    });
    let Some(permit) = permit else { return never_started() };
    let staged = match how.staged() {
        Ok(staged) => staged,
        Err(why) => return Event::Failed(why),
    };
    // Distinguishes this attempt from all others, also on hosts that share a folder. A hash, because only the
    // agent may see the secret.
    let attempt = blake3::hash(&start.ticket.secret).to_hex()[..16].to_owned();
    let script = staging::script(&staged, &attempt);
    let Some(mut command) = how.command(start, &staging::command(&script)) else {
        return Event::Failed("no command is named for ssh".into());
    };
    agent.notify(Event::State("connects by ssh".into()));
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
