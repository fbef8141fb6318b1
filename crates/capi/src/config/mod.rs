//! Client configuration in the format of Ninf-G.
//!
//! ```text
//! <CLIENT>
//!     loglevel 3
//! </CLIENT>
//! <SERVER>
//!     hostname     localhost
//!     tag          here
//!     environment  OMP_NUM_THREADS=4
//! </SERVER>
//! ```
//!
//! Accepts everything that Ninf-G accepts. Settings without effect here produce a [`Warning`].

mod client;
mod error;
mod files;
mod lines;
mod location;
mod read;
mod remote;
mod section;
mod server;
mod signals;
mod table;
#[cfg(test)]
mod tests;
mod values;

pub use client::{ClientConfig, FunctionInfo, InformationSource};
pub use error::{ConfigError, Position, Scope, Warning};
pub use files::{Disk, Files, MAX_FILE};
pub use location::{Location, Machine, ThisMachine, host_of, locate};
pub use remote::{StartedServer, servers};
pub use server::{ArgumentTransfer, Debug, RemoteSettings, Server, ServerSettings, WaitTime};
