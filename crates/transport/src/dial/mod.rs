//! Dialling a client or a server. Tries all its addresses, each a moment after the previous one, and uses the first
//! that answers as the expected one.

mod attempts;
mod client;
mod server;

pub use attempts::{Attempts, DialFailure, Failure};
pub use client::{ClientConnection, DialError, dial};
pub use server::{DialStage, ServerDialError, ServerFailure, dial_server};
