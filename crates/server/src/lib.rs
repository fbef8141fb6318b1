//! A server that many clients share: its configuration, the roles and limits of users, and the audit log.

#![forbid(unsafe_code)]

mod access;
mod answers;
pub mod audit;
mod catalogue;
mod check;
pub mod config;
mod detached;
pub mod limits;
mod pools;
mod presence;
mod publisher;
pub mod roles;
mod server;
mod service;
mod shared;
mod statistics;
mod stop;

pub use catalogue::CatalogueError;
pub use check::check;
pub use server::{Server, ServerError};
pub use stop::Stop;
