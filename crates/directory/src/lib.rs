//! Directory of servers and their functions: announcements, lookups, search, and pages for people.

#![forbid(unsafe_code)]

mod directory;
mod etcd;
mod examples;
mod explanation;
mod http;
mod pages;
mod registry;
mod replication;
mod replicator;
mod shared;
mod store;
#[cfg(test)]
mod tests;

pub use directory::{DIRECTORY_PORT, Directory, DirectoryError};
pub use etcd::EtcdMember;
pub use explanation::{Arguments, explain};
pub use registry::{
    AnnouncementError, FunctionOffer, FunctionState, Interface, NotOffered, Registry, ServerState,
};
pub use replication::EtcdOptions;
pub use shared::Options;
