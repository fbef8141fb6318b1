//! A server that many clients share: its configuration, the roles and limits of users, and the audit log.

#![forbid(unsafe_code)]

mod access;
mod answers;
mod api_tokens;
pub mod audit;
mod caller;
mod catalogue;
mod check;
pub mod config;
mod detached;
pub mod directory;
pub mod exposition;
mod http;
pub mod limits;
pub mod log;
mod named_data;
mod named_data_requests;
mod offered_function;
pub mod page;
mod pools;
mod presence;
mod publisher;
mod python_check;
pub mod roles;
mod server;
mod service;
mod shared;
mod statistics;
mod status;
mod stop;
mod traces;
mod worker_user;

pub use api_tokens::ApiTokenError;
pub use catalogue::CatalogueError;
pub use check::check;
pub use server::{Server, ServerError};
pub use stop::Stop;
pub use worker_user::WorkerUserError;
