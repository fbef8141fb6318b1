//! One end of a connection: frames out with a queue, frames in with streams put together.

pub mod buffers;
mod compression;
mod outbound;
pub mod payload;
mod receiver;
mod sender;

use std::io;
use std::sync::Arc;

use gridrpc_transport::Transport;
use gridrpc_wire::{HostCall, Message, Section, WireError};
use thiserror::Error;

pub use outbound::{Outbound, Pushing, Watch};
pub use receiver::{Coming, Placement, Received, Receiver, Stream};
pub use sender::{Push, Sender};

/// The start of the reason why workers that lack a module did not start.
pub const NOT_PRELOADED: &str = "what `preload` names cannot be loaded: ";

/// Why a connection cannot go on.
#[derive(Debug, Error)]
pub enum LinkError {
    /// The other end sent what is no message.
    #[error("broken message: {0}")]
    Wire(#[from] WireError),
    /// The other end sent a message that has no place here.
    #[error("unexpected message: {0}")]
    Unexpected(String),
    /// The other end is not trusted, and sent what it may not.
    #[error("{0}, from a host that is not trusted")]
    Untrusted(&'static str),
    /// Memory that the other end has lent could not be mapped. The connection goes on.
    #[error("there is no room for {bytes} bytes of shared memory: {why}")]
    NoRoom {
        /// How much.
        bytes: u64,
        /// What the system said.
        why: String,
    },
    /// The socket failed.
    #[error("connection failed: {0}")]
    Io(#[from] io::Error),
}

/// What both halves of a connection use.
pub type Socket = Arc<dyn Transport>;

/// The sections of a message, if it is of a kind that has any.
fn sections<'m, 'a>(message: &'m Message<'a>) -> &'m [Section<'a>] {
    match message {
        Message::Function { sections, .. }
        | Message::Call { sections, .. }
        | Message::Reply { sections, .. }
        | Message::Failure { sections, .. }
        | Message::Callback { sections, .. }
        | Message::CallbackReply { sections, .. }
        | Message::Blob { sections, .. }
        | Message::HostCall(HostCall { sections, .. })
        | Message::Output { sections, .. }
        | Message::Echo { sections, .. }
        | Message::KeptResult { sections, .. }
        | Message::Echoed { sections, .. }
        | Message::Module { sections, .. } => sections,
        _ => &[],
    }
}

#[cfg(test)]
mod outbound_tests;
#[cfg(test)]
mod tests;
