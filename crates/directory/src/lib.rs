//! Directory of servers and their functions: announcements, lookups, search, and pages for people.

#![forbid(unsafe_code)]

mod client;
mod directory;
mod examples;
mod explanation;
mod http;
mod pages;
mod registry;
mod shared;
mod store;
#[cfg(test)]
mod tests;

pub use client::{DirectoryClient, LookupError};
pub use directory::{DIRECTORY_PORT, Directory, DirectoryError};
pub use explanation::{Arguments, explain};
pub use registry::{
    AnnouncementError, FunctionState, Interface, NotOffered, Offer, Registry, ServerState,
};
pub use shared::Options;
