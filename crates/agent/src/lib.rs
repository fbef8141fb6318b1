//! Processes that run workers for others. An agent runs them on another host for one client, which it dials with a
//! ticket, and ends with it. A daemon runs them for any number of clients, which come and go.
//!
//! Both serve each client in the same way (serving.rs), on a grid of their own.

mod agent;
mod answers;
mod broadcast;
mod callbacks;
mod calls;
mod client_blobs;
mod client_memory;
mod connection;
mod daemon;
mod error;
mod examination;
mod handshake;
mod heartbeat;
mod held_results;
mod incoming;
pub mod inspect;
mod modules;
mod named_data;
mod requests;
mod reservations;
mod service;
mod serving;
mod shared_data;
mod standard_input;
mod user;

pub use agent::{Options, run};
pub use daemon::Daemon;
pub use error::AgentError;
pub use gridrpc_client::{RequestError, RequestSections};
pub use named_data::NamedData;
pub use service::{
    AcceptedCall, Access, CallEnd, Denied, DetachRequest, DetachedEntry, InPlace, NamedFunction,
    Notify, Permit, Rights, ServedFunction, Service, Target,
};
pub use user::{Proof, User};
