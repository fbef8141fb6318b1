//! Child processes, and what becomes of them when their parent ends.

use std::io;
use std::process::Command;

use nix::sys::signal::Signal;

/// The environment variable that says whether processes that functions have started end with their worker:
/// `keep` leaves them.
const LEFTOVERS: &str = "GRIDRPC_LEFTOVERS";

/// Whether processes that functions have started end with their worker.
#[must_use]
pub fn leftovers_end() -> bool {
    std::env::var_os(LEFTOVERS).is_none_or(|value| value != "keep")
}

/// Ends a command's process with SIGTERM when this one ends, however that ends: the ends of its pipes do not
/// reach all programs, ssh for one as long as what it runs has not ended.
pub fn end_with_parent(command: &mut Command) {
    let parent = std::process::id();
    let tied = move || {
        nix::sys::prctl::set_pdeathsig(Signal::SIGTERM)?;
        // The parent may have ended already.
        if std::os::unix::process::parent_id() == parent {
            Ok(())
        } else {
            Err(io::ErrorKind::NotFound.into())
        }
    };
    // SAFETY: it makes two system calls and allocates nothing.
    unsafe { std::os::unix::process::CommandExt::pre_exec(command, tied) };
}
