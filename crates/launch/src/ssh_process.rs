//! One ssh, from its start to its end.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::IpAddr;
use std::os::fd::AsFd;
use std::process::{ChildStderr, ChildStdin, ChildStdout, ExitStatus};
use std::sync::Arc;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::agents::Agent;
use super::child::{Child, Pipes, how as how_it_ended};
use super::error_hints::refusal;
use super::lines::{Lines, text};
use super::permits::Permit;
use super::ssh_command::{SshCommand, client_port};
use super::staging::{ScriptMessage, failure, parse_message};
use crate::launcher::{COPIES, Event, Start};

/// ssh's message on standard error for an established reverse tunnel.
const ALLOCATED: &str = "Allocated port ";
/// ssh's own exit status, for failures before the remote command runs.
const OWN_STATUS: i32 = 255;
/// How many of the last lines are kept for messages; the one about a changed key takes 15.
const KEPT: usize = 30;
/// How often to check whether ssh has ended while other processes hold its standard error, ms.
const LOOK: u16 = 100;

/// An ssh process, and the state of its host.
#[derive(Debug)]
pub(super) struct SshProcess<'a> {
    agent: &'a Agent,
    how: &'a SshCommand,
    start: &'a Start,
    script: String,
    child: Arc<Child>,
    stdin: Option<ChildStdin>,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    /// Whether the host's script runs, and whether the program has become the agent.
    greeted: bool,
    started: bool,
    /// The client's address as the host sees it.
    seen: Option<IpAddr>,
    /// The port on the host that ssh forwards to the client.
    forwarded: Option<u16>,
    /// The folder for the program on the host.
    folder: String,
    failed: Option<String>,
    last: VecDeque<String>,
}

/// Source of input.
#[derive(Clone, Copy)]
enum From {
    Output,
    Error,
}

impl<'a> SshProcess<'a> {
    pub(super) fn new(
        agent: &'a Agent,
        how: &'a SshCommand,
        start: &'a Start,
        script: String,
        child: Arc<Child>,
        pipes: Pipes,
    ) -> SshProcess<'a> {
        let Pipes { stdin, stdout, stderr } = pipes;
        SshProcess {
            agent,
            how,
            start,
            script,
            child,
            stdin,
            stdout,
            stderr,
            greeted: false,
            started: false,
            seen: None,
            forwarded: None,
            folder: String::new(),
            failed: None,
            last: VecDeque::new(),
        }
    }

    /// Starts the agent and waits until ssh has ended. Returns the permit once the agent has started.
    pub(super) fn run(mut self, permit: Permit<'_>) -> Event {
        let mut permit = Some(permit);
        let (mut output, mut error) = (Lines::default(), Lines::default());
        let mut piece = vec![0; 8 << 10];
        while let Some(from) = self.wait() {
            let read = match from {
                From::Output => self.stdout.as_mut().map(|pipe| pipe.read(&mut piece)),
                From::Error => self.stderr.as_mut().map(|pipe| pipe.read(&mut piece)),
            };
            let read = read.and_then(Result::ok).unwrap_or(0);
            match (from, read) {
                (From::Output, 0) => self.stdout = None,
                (From::Error, 0) => self.stderr = None,
                (From::Output, _) => {
                    output.push(&piece[..read], |line| self.handle_line(&text(line)))
                }
                (From::Error, _) => error.push(&piece[..read], |line| self.note(line)),
            }
            if self.started {
                permit = None;
            }
        }
        error.end(|line| self.note(line));
        drop(permit);
        self.stdin = None;
        let status = self.child.wait();
        if self.greeted && self.forwarded.is_none() {
            // Sessions that share a connection do not learn their port.
            self.how.cancel_way_back(self.start);
        }
        self.end(status)
    }

    /// Waits for input. None at the end of input.
    fn wait(&self) -> Option<From> {
        loop {
            let mut pipes = Vec::new();
            // Standard error first: ssh writes its line about the tunnel before the script writes.
            pipes.extend(self.stderr.as_ref().map(|pipe| (From::Error, pipe.as_fd())));
            pipes.extend(self.stdout.as_ref().map(|pipe| (From::Output, pipe.as_fd())));
            let fds = pipes.iter().map(|(_, fd)| PollFd::new(*fd, PollFlags::POLLIN));
            let mut fds: Vec<PollFd<'_>> = fds.collect();
            // A process that ssh left behind, such as a `ProxyCommand`, may hold standard error open.
            let timeout = match self.stdout {
                Some(_) => PollTimeout::NONE,
                None => PollTimeout::from(LOOK),
            };
            let ended = self.stdout.is_none() && self.child.has_ended();
            if fds.is_empty() {
                return None;
            }
            // After an interruption it polls again.
            let _ = poll(&mut fds, if ended { PollTimeout::ZERO } else { timeout });
            let ready = fds.iter().zip(&pipes).find(|(fd, _)| fd.any() == Some(true));
            match ready {
                Some((_, (from, _))) => return Some(*from),
                None if ended => return None,
                None => {}
            }
        }
    }

    /// Handles a line of standard error from ssh or the host.
    fn note(&mut self, line: &[u8]) {
        let words = text(line);
        if let Some(rest) = words.strip_prefix(ALLOCATED) {
            self.forwarded = rest.split(' ').next().and_then(|port| port.parse().ok());
            return;
        }
        if self.last.len() == KEPT {
            self.last.pop_front();
        }
        self.last.push_back(words);
        self.agent.notify(Event::Said(line.to_vec()));
    }

    /// Handles a line of the host's standard output.
    fn handle_line(&mut self, line: &str) {
        // Once started, standard output belongs to the agent.
        let Some(message) = parse_message(line).filter(|_| !self.started && self.failed.is_none())
        else {
            return;
        };
        match message {
            ScriptMessage::Hello if !self.greeted => {
                self.greeted = true;
                let script = std::mem::take(&mut self.script);
                self.say(script.as_bytes());
            }
            ScriptMessage::Hello => {}
            ScriptMessage::Client(address) => self.seen = address.parse().ok(),
            ScriptMessage::Folder(folder) => self.folder = folder,
            ScriptMessage::Absent(machine) => self.copy(&machine),
            ScriptMessage::Failed(kind, why) => {
                let why = failure(&self.start.host, &self.folder, &kind, &why);
                self.fail(why);
            }
            ScriptMessage::Starts => self.hand_over(),
        }
    }

    fn copy(&mut self, machine: &str) {
        let program = match self.how.source.program() {
            Ok(program) => program,
            Err(why) => return self.fail(why.to_owned()),
        };
        if machine != program.machine {
            return self.fail(format!(
                "{} is a machine of another kind ({machine}) than this one ({}), whose program it \
                 cannot run: install gridrpc there, and name its program by `program` in grid.toml",
                self.start.host, program.machine
            ));
        }
        self.agent.notify(Event::State(COPIES.into()));
        if let Some(stdin) = &mut self.stdin {
            // If the host does not take all of it, it reports why.
            let _ = program.send(stdin);
        }
    }

    /// Gives the agent its ticket.
    fn hand_over(&mut self) {
        let mut ticket = self.start.ticket.clone();
        let seen = self.seen.filter(|_| !self.how.addresses_are_named);
        ticket.addresses =
            addresses(ticket.addresses, client_port(self.start), seen, self.forwarded);
        self.agent.notify(Event::State("starts the agent".into()));
        self.say(format!("{}\n", ticket.encode()).as_bytes());
        self.started = true;
        if let Some(stdin) = self.stdin.take() {
            self.agent.keep(stdin);
        }
    }

    fn say(&mut self, bytes: &[u8]) {
        if let Some(stdin) = &mut self.stdin {
            // If nobody reads it, ssh has ended and reports why.
            let _ = stdin.write_all(bytes);
        }
    }

    fn fail(&mut self, why: String) {
        self.failed = Some(why);
        // The script ends with its input.
        self.stdin = None;
    }

    /// The final event of the agent, now that ssh has ended.
    fn end(mut self, status: Option<ExitStatus>) -> Event {
        let host = &self.start.host;
        let own = status.and_then(|status| status.code()) == Some(OWN_STATUS);
        if let Some(why) = self.failed {
            return Event::Failed(why);
        }
        let lines: &[String] = self.last.make_contiguous();
        let last = lines.iter().rev().find(|line| !line.is_empty());
        let last = last.map(|line| format!(": {line}")).unwrap_or_default();
        if self.started && own {
            return Event::Ended(format!("ssh has lost the connection to {host}{last}"));
        }
        if self.started || self.agent.is_stopped() {
            return Event::Ended(how_it_ended(status));
        }
        if own && !self.greeted {
            return Event::Failed(refusal(host, &self.how.command.join(" "), lines));
        }
        Event::Failed(format!(
            "what ssh ran on {host} ended ({}) before there was an agent{last}; see that `{} {host} \
             sh` gives a shell there",
            how_it_ended(status),
            self.how.command.join(" ")
        ))
    }
}

/// Addresses for the agent to dial: first those of the client as its host sees it, last the tunnel through
/// ssh.
fn addresses(
    named: Vec<String>,
    port: Option<u16>,
    seen: Option<IpAddr>,
    forwarded: Option<u16>,
) -> Vec<String> {
    let first = seen.zip(port).map(|(address, port)| match address {
        IpAddr::V4(address) => format!("{address}:{port}"),
        IpAddr::V6(address) => format!("[{address}]:{port}"),
    });
    let others = named.into_iter().filter(|address| Some(address) != first.as_ref());
    let mut all: Vec<String> = first.clone().into_iter().chain(others).collect();
    all.extend(forwarded.map(|port| format!("127.0.0.1:{port}")));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_likely_address_is_first_and_the_way_back_last() {
        let named = || vec!["10.0.0.1:99".to_owned(), "10.0.0.2:99".to_owned()];
        let seen = "10.0.0.2".parse().ok();
        let all = addresses(named(), Some(99), seen, Some(4000));
        assert_eq!(all, ["10.0.0.2:99", "10.0.0.1:99", "127.0.0.1:4000"]);
        let all = addresses(named(), Some(99), "fe80::1".parse().ok(), None);
        assert_eq!(all, ["[fe80::1]:99", "10.0.0.1:99", "10.0.0.2:99"]);
        assert_eq!(addresses(named(), Some(99), None, None), named());
    }
}
