//! Announcements of a server to directories, which help clients to choose among servers.

mod announcement;
mod announcer;

pub use announcement::{AnnouncedModule, Announcement, DirectoryReply};
pub(crate) use announcer::Announcer;
