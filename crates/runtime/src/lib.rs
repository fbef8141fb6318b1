//! What makes a grid happen: connections, shared memory, the client's reactor, the process that
//! starts workers, and the worker that runs functions of modules.

pub mod agent;
pub mod borrowed;
pub mod client;
mod control_groups;
pub mod doctor;
mod forks;
pub mod gathered;
pub mod launcher;
pub mod link;
pub mod live;
pub mod loan;
pub mod memory;
pub mod nested;
mod nesting;
pub mod numerical;
mod pages;
mod passing;
mod patience;
pub mod payload;
pub mod processors;
mod room;
mod safe_path;
pub mod segment;
pub mod servers;
pub mod sys;
mod timed_stream;
pub mod tool;
pub mod transport;
pub mod typed;
pub mod worker;
