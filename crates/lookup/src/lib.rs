//! Lookups in directories, and the choice among the servers that they name.

#![forbid(unsafe_code)]

mod client;
mod directories;

pub use gridrpc_placement::{CallTimes, ClientCall, Work};

pub use client::{DirectoryClient, LookupError, ServerOffer};
pub use directories::{ChosenServer, Directories, LookupAnswer};
