//! Memory shared by the processes of one machine: segments lent to other processes, arrays that all workers read, the
//! progress of each worker, and its unsent answers and partial results.

pub mod arrays;
pub mod borrowed;
pub mod foreign;
pub mod lendings;
pub mod outbox;
pub mod outboxes;
mod pages;
pub mod partial;
mod passing;
pub mod progress;
pub mod segment;
mod sync;

pub use arrays::{SharedArray, announce_to, find as find_shared, give_up_old, have_memory};
pub use pages::mark_forked;
pub use partial::{AppendBuffer, Items, Recovered};
pub use passing::ForwardableSegment;
