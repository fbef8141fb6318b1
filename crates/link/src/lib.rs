//! One end of a connection: outgoing frames with a queue, incoming frames with reassembled streams.

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
pub use receiver::{PartialAnswer, Placement, Received, Receiver, Stream};
pub use sender::{Push, Sender};

/// Prefix of the error for workers that did not start because a module is missing.
pub const NOT_PRELOADED: &str = "what `preload` names cannot be loaded: ";

/// Reason why a connection cannot continue.
#[derive(Debug, Error)]
pub enum LinkError {
    /// The other end sent an invalid message.
    #[error("broken message: {0}")]
    Wire(#[from] WireError),
    /// The other end sent a message that is not allowed here.
    #[error("unexpected message: {0}")]
    Unexpected(String),
    /// The other end is not trusted, and sent a message that needs trust.
    #[error("{0}, from a host that is not trusted")]
    Untrusted(&'static str),
    /// Memory lent by the other end could not be mapped. The connection continues.
    #[error("there is no room for {bytes} bytes of shared memory: {why}")]
    NoRoom {
        /// Its size.
        bytes: u64,
        /// The system's error.
        why: String,
    },
    /// The socket failed.
    #[error("connection failed: {0}")]
    Io(#[from] io::Error),
}

/// The transport shared by both halves of a connection.
pub type Socket = Arc<dyn Transport>;

/// The sections of a message; empty for kinds without any.
#[must_use]
pub fn sections<'m, 'a>(message: &'m Message<'a>) -> &'m [Section<'a>] {
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
