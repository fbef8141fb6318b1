//! The ssh command line.

use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use gridrpc_sys::process::end_with_parent;

use crate::launcher::Start;
use crate::staging::{Source, Staged};

/// How many keep-alive messages in a row a host may miss.
pub(super) const MISSED: u64 = 3;

/// Settings that all hosts of a group share.
#[derive(Debug)]
pub(super) struct SshCommand {
    pub(super) command: Vec<String>,
    /// The program on the hosts; none: this machine's is copied.
    pub(super) program: Option<String>,
    pub(super) staging: Option<String>,
    pub(super) source: Source,
    /// Whether the configuration says where agents dial.
    pub(super) addresses_are_named: bool,
    /// Seconds between keep-alive messages.
    pub(super) interval: u64,
}

impl SshCommand {
    /// The source of the hosts' program.
    pub(super) fn staged(&self) -> Result<Staged<'_>, String> {
        if let Some(program) = &self.program {
            return Ok(Staged::There(program));
        }
        let program = self.source.program()?;
        Ok(Staged::Copied { folder: self.staging.as_deref(), program })
    }

    pub(super) fn command(&self, start: &Start, remote: &str) -> Option<Command> {
        let (name, own) = self.command.split_first()?;
        let mut command = Command::new(name);
        // ssh uses the first value of an option: the user's command, then this one, then its files.
        command.args(own).arg("-T");
        let mut option = |option: &str| {
            command.args(["-o", option]);
        };
        // Nobody is there to answer a prompt.
        option("BatchMode=yes");
        option("ConnectTimeout=10");
        option(&format!("ServerAliveInterval={}", self.interval));
        option(&format!("ServerAliveCountMax={MISSED}"));
        // The reverse tunnel is optional; ssh reports its port at this log level.
        option("ExitOnForwardFailure=no");
        option("LogLevel=INFO");
        // Use an existing shared connection, but do not create one: other sessions through it would end with
        // this ssh.
        option("ControlMaster=no");
        command.args(way_back(start).iter().flatten());
        command.arg(&start.host).arg(remote);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        end_with_parent(&mut command);
        Some(command)
    }

    /// Removes the reverse tunnel from a connection that the user shares among sessions, where it would keep
    /// its port on the host open. Without such a connection, ssh fails at once.
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

/// The ssh option that forwards any free port of the host to the client's port.
fn way_back(start: &Start) -> Option<[String; 2]> {
    Some(["-R".into(), format!("0:127.0.0.1:{}", client_port(start)?)])
}

/// The port that the client listens on.
pub(super) fn client_port(start: &Start) -> Option<u16> {
    start.ticket.addresses.first()?.rsplit_once(':')?.1.parse().ok()
}
