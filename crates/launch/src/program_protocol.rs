//! The line protocol between a client and a launcher program: docs/launchers.md.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use gridrpc_sys::lock;
use gridrpc_sys::printer::Printer;

use crate::launcher::{Event, Report, Start};

/// The client's first line: the protocol and its version.
pub(super) const HELLO: &str = "gridrpc-launcher 1";

/// State of the conversation.
#[derive(Debug)]
pub(super) struct Protocol {
    /// The program's name, for messages.
    name: String,
    report: Report,
    printer: Arc<Printer>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Requested agents, and whether they have started.
    agents: HashMap<u32, bool>,
    /// Why the conversation is over.
    over: Option<String>,
    /// Whether an invalid line has been reported to the user.
    complained: bool,
}

impl Protocol {
    pub(super) fn new(name: String, report: Report) -> Protocol {
        let printer = Printer::new(libc::STDERR_FILENO);
        Protocol { name, report, printer, state: Mutex::default() }
    }

    /// Whether the program has ended.
    pub(super) fn is_over(&self) -> bool {
        lock(&self.state).over.is_some()
    }

    /// Records a requested agent and returns the line that requests it. None if it cannot be requested, which
    /// is reported.
    pub(super) fn ask(&self, start: &Start) -> Option<String> {
        let host = &start.host;
        let wrong = host.is_empty() || host.chars().any(|c| c.is_whitespace() || c.is_control());
        let refused = {
            let mut state = lock(&self.state);
            let over = state.over.clone();
            let refused = wrong.then(|| format!("`{host}` cannot be a host's name: it has blanks"));
            let refused = refused.or(over);
            if refused.is_none() {
                state.agents.insert(start.agent, false);
            }
            refused
        };
        if let Some(why) = refused {
            self.report.notify(start.agent, Event::Failed(why));
            return None;
        }
        Some(format!("start {} {host} {}\n", start.agent, start.ticket.encode()))
    }

    /// Handles a line from the program.
    pub(super) fn handle_line(&self, line: &str) {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let (number, words) = rest.split_once(' ').unwrap_or((rest, ""));
        let known = matches!(word, "state" | "started" | "said" | "failed" | "ended");
        match number.parse() {
            Ok(agent) if known => self.take(agent, word, words),
            _ => self.complain(line),
        }
    }

    fn take(&self, agent: u32, word: &str, words: &str) {
        let or = |usual: &str| if words.is_empty() { usual.to_owned() } else { words.to_owned() };
        let mut state = lock(&self.state);
        // The end of all others has been reported.
        let Some(started) = state.agents.get_mut(&agent) else { return };
        let event = match word {
            "started" => {
                *started = true;
                Event::State("has started".to_owned())
            }
            "state" => Event::State(words.to_owned()),
            "said" => Event::Said(format!("{words}\n").into_bytes()),
            "failed" => Event::Failed(or("its launcher does not say why")),
            _ => Event::Ended(or("its launcher does not say how")),
        };
        if matches!(event, Event::Failed(_) | Event::Ended(_)) {
            state.agents.remove(&agent);
        }
        // Under the lock, so that no event follows an agent's end.
        self.report.notify(agent, event);
    }

    fn complain(&self, line: &str) {
        if !std::mem::replace(&mut lock(&self.state).complained, true) {
            let short: String = line.chars().take(200).collect();
            self.print(&format!(
                "it has written a line that is none of the launchers' protocol, which is ignored, \
                 as others will be: {short}"
            ));
        }
    }

    /// Shows the user a line that belongs to no particular agent.
    pub(super) fn print(&self, line: &str) {
        self.printer.print(format!("gridrpc: launcher {}: {line}\n", self.name).as_bytes());
    }

    /// Reports the end of all agents because the program has ended.
    pub(super) fn end(&self, why: &str) {
        let mut state = lock(&self.state);
        state.over = Some(why.to_owned());
        for (agent, started) in std::mem::take(&mut state.agents) {
            let why = why.to_owned();
            let event = if started { Event::Ended(why) } else { Event::Failed(why) };
            self.report.notify(agent, event);
        }
    }
}
