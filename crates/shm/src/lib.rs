//! Memory that processes of one machine share: segments that one lends to another, arrays that all workers
//! read, how far each worker has come, and what it has said or returned when it ends.

pub mod arrays;
pub mod borrowed;
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
pub use pages::tell_forked;
pub use partial::{Items, Recovered, Stretch};
pub use passing::Passing;
