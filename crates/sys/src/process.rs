//! Child processes, and their end with their parent.

use std::io;
use std::process::Command;

use nix::sys::signal::Signal;

/// Environment variable that decides whether processes started by functions end with their worker: `keep` leaves
/// them.
const LEFTOVERS: &str = "GRIDRPC_LEFTOVERS";

/// Whether processes started by functions end with their worker.
#[must_use]
pub fn leftovers_end() -> bool {
    std::env::var_os(LEFTOVERS).is_none_or(|value| value != "keep")
}

/// The parent of a process.
///
/// # Errors
/// When there is no such process.
pub fn parent_of(pid: u32) -> io::Result<u32> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"));
    parent.and_then(|pid| pid.trim().parse().ok()).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// Ends a command's process with SIGTERM when this one ends, for any reason. Closed pipes do not end all programs:
/// ssh continues as long as its remote command runs.
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
