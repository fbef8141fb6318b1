//! Examination of a host before it serves: the agent reports its findings, and transfers data both ways to
//! measure bandwidth.

use std::sync::Arc;
use std::time::Duration;

use gridrpc_link::{LinkError, Received};
use gridrpc_sys::monotonic_ns;
use gridrpc_transport::dial::ClientConnection;
use gridrpc_wire::{MAX_ECHO, Message};

use crate::answers::Answers;
use crate::handshake::BeforeServing;
use crate::inspect::{HostFindings, Load, Route};
use crate::modules;

/// How long an examining client may pause between requests: other hosts may be examined first.
const NEXT: Duration = Duration::from_secs(600);

/// State of an examination.
pub(super) struct Examination {
    way: Route,
    /// Created on first use.
    load: Option<Load>,
}

impl Examination {
    pub(super) fn new(dialled: &ClientConnection) -> Examination {
        Examination { way: Route::of(dialled), load: None }
    }
}

impl BeforeServing for Examination {
    fn take(&mut self, received: Received<'_>, answers: &Arc<Answers>) -> Result<(), LinkError> {
        match received.message {
            Message::Examine(examine) => {
                let staging = modules::folder(examine.staging).unwrap_or_else(std::env::temp_dir);
                let there = HostFindings::look(&examine, &staging, &self.way);
                let text = serde_json::to_string(&there).unwrap_or_default();
                answers.tell(&Message::Findings { text: &text });
            }
            Message::Echo { number, back, .. } => {
                let load = self.load.get_or_insert_with(Load::new);
                let (sections, streams) = load.take(back.min(MAX_ECHO) as usize);
                answers.up.push_with(&Message::Echoed { number, sections }, streams)?;
            }
            Message::Ping { number } => {
                answers.tell(&Message::Pong { number, clock: monotonic_ns() });
            }
            other => return Err(LinkError::Unexpected(format!("{:?}", other.kind()))),
        }
        answers.up.flush();
        Ok(())
    }

    fn takes_modules(&self) -> bool {
        true
    }

    fn timeout(&self) -> Option<Duration> {
        Some(NEXT)
    }
}
