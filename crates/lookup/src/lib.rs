//! Lookups in directories, and the choice among the servers that they name.

#![forbid(unsafe_code)]

mod client;
mod directories;

pub use gridrpc_placement::{OwnCall, Work};

pub use client::{DirectoryClient, LookupError, ServerOffer};
pub use directories::{CallTimes, ChosenServer, Directories, LookupAnswer};
