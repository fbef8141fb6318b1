//! Callback handlers of a call.

use std::fmt;
use std::sync::Arc;

use gridrpc_link::payload::{Incoming, Payload};
use gridrpc_wire::Order;

/// Handler for the callbacks of a call.
pub trait CallbackHandler: Send + Sync {
    /// Runs the callback parameter with number `index` and these arguments, whose numbers have
    /// this byte order, and returns its results.
    ///
    /// # Errors
    /// A message for the caller; the call fails with it.
    fn run(&self, index: u16, arguments: Vec<Incoming>, order: Order) -> Result<Payload, String>;

    /// Whether it belongs to a client that the grid works for, which also serves the calls that the function makes.
    fn is_of_parent(&self) -> bool {
        false
    }
}

/// The callbacks of one call.
#[derive(Clone)]
pub struct Callbacks(pub Arc<dyn CallbackHandler>);

impl fmt::Debug for Callbacks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Callbacks")
    }
}
