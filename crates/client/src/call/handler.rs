//! What the callbacks of a call do.

use std::fmt;
use std::sync::Arc;

use gridrpc_link::payload::{Incoming, Payload};

/// What the callbacks of a call do.
pub trait CallbackHandler: Send + Sync {
    /// Runs the callback parameter number `index` with these arguments; returns its results.
    ///
    /// # Errors
    /// What the caller should be told; the call fails with it.
    fn run(&self, index: u16, arguments: Vec<Incoming>) -> Result<Payload, String>;
}

/// The callbacks of one call.
#[derive(Clone)]
pub struct Callbacks(pub Arc<dyn CallbackHandler>);

impl fmt::Debug for Callbacks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Callbacks")
    }
}
