//! Before it serves, an agent can be examined: it says what there is on its host, and carries data there and
//! back for the client to see how fast the way is.

use std::time::Duration;

use gridrpc_link::{LinkError, Received};
use gridrpc_sys::monotonic_ns;
use gridrpc_transport::dial::Dialled;
use gridrpc_wire::{MAX_ECHO, Message};

use crate::answers::Answers;
use crate::inspect::{HostFindings, Load, Route};
use crate::modules;

/// How long a client that examines may take until it asks again: others may have their turn before.
pub(super) const NEXT: Duration = Duration::from_secs(600);

/// What an examined agent has at hand.
pub(super) struct Examination {
    way: Route,
    /// Made when it is asked for first.
    load: Option<Load>,
}

impl Examination {
    pub(super) fn new(dialled: &Dialled) -> Examination {
        Examination { way: Route::of(dialled), load: None }
    }

    /// Answers what is no request to serve. What has no place here is an error.
    pub(super) fn answer(
        &mut self,
        received: Received<'_>,
        answers: &Answers,
    ) -> Result<(), LinkError> {
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
}
