//! Reasons why a process could not start: a temporary shortage or a permanent error.

use std::io;

use gridrpc_core::Cause;
use nix::errno::Errno;

use crate::config::Launch;

/// The cause of a failed start, from a system error.
pub(super) fn not_started(error: &io::Error) -> Cause {
    let why = format!("could not be started: {error}{}", gridrpc_sys::limit_of(error));
    match hint_for(error) {
        Some(hint) => Cause::Shortage(format!("{why}: {hint}")),
        None => Cause::Failed(why),
    }
}

/// The cause if the program that starts workers cannot run.
pub(super) fn no_spawner(launch: &Launch, error: &io::Error) -> Cause {
    let user = launch.limits.user.as_ref().map(|user| format!(" as user `{}`", user.name));
    let user = user.unwrap_or_default();
    let why = format!("could not run `{}`{user}: {error}", launch.program.display());
    match hint_for(error) {
        Some(hint) => Cause::Shortage(format!("{why}: {hint}")),
        None => Cause::Failed(why + &launch.advised()),
    }
}

/// The cause of a failed fork in the spawner. A fork fails only for lack of processes or memory.
pub(super) fn not_forked(error: &str) -> Cause {
    let hint = hint(Errno::EAGAIN).unwrap_or_default();
    Cause::Shortage(format!("could not be started: {error}: {hint}"))
}

fn hint_for(error: &io::Error) -> Option<&'static str> {
    hint(Errno::from_raw(error.raw_os_error()?))
}

/// A hint for a shortage; `None` if the error is not a shortage.
fn hint(errno: Errno) -> Option<&'static str> {
    Some(match errno {
        Errno::EAGAIN => {
            "the system allows no more processes or has no memory for one (see `ulimit -u`, and \
             `pids.max` and `memory.max` of the control group)"
        }
        Errno::EMFILE => "this process may open no more files (see `ulimit -n`)",
        Errno::ENFILE => "the system may open no more files (see `fs.file-max`)",
        Errno::ENOMEM | Errno::ENOBUFS => "the system is short of memory",
        Errno::ENOSPC => "there is no room for more shared memory",
        Errno::ETOOMANYREFS => "too many file descriptors are in flight (see `ulimit -n`)",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_pass_is_told_from_what_stays() {
        let cause = |errno: Errno| not_started(&io::Error::from(errno));
        for errno in [Errno::EAGAIN, Errno::EMFILE, Errno::ENFILE, Errno::ENOMEM] {
            let cause = cause(errno);
            assert!(matches!(cause, Cause::Shortage(_)), "{errno}: {cause}");
        }
        for errno in [Errno::ENOENT, Errno::EACCES, Errno::EPERM] {
            let cause = cause(errno);
            assert!(matches!(cause, Cause::Failed(_)), "{errno}: {cause}");
        }
        let text = cause(Errno::EMFILE).to_string();
        assert!(text.contains("os error 24") && text.contains("ulimit -n"), "{text}");
        let text = cause(Errno::EFBIG).to_string();
        assert!(text.contains("os error 27") && text.contains("ulimit -f"), "{text}");
        let text = not_forked("Resource temporarily unavailable (os error 11)").to_string();
        assert!(text.contains("os error 11") && text.contains("pids.max"), "{text}");
    }
}
