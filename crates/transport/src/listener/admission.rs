//! Credentials that a listener requires of connections.

use std::net::SocketAddr;
use std::sync::Arc;

use super::error::HandshakeError;
use crate::Keys;
use crate::certificates::ServerKeys;

/// Credentials of a connection.
pub enum Admission {
    /// A secret of an invited agent, which is accepted once.
    Secret {
        /// The keys of the grid. Without them connections are plain TCP, and the secret alone admits.
        keys: Option<Arc<Keys>>,
        /// How many agents may wait for a moment until they are invited, because they may connect before the listener
        /// learns of them.
        early: usize,
    },
    /// A certificate of a user.
    Certificate {
        /// The keys of the server.
        keys: ServerKeys,
        /// Receives the address of each connection that was not admitted, and the reason. The listener's thread calls
        /// it, so it must not block.
        refused: OnRefused,
    },
}

/// Receives the connections that were not admitted.
pub type OnRefused = Box<dyn Fn(SocketAddr, HandshakeError) + Send + Sync>;
