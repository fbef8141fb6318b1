//! What the system says when it refuses something.

use std::io;

/// A result of the system's, which is negative where there is an error.
pub(crate) fn check(result: isize) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

/// Which limit an error speaks of, if it does not say so itself: what to add to its text.
#[must_use]
pub fn limit_of(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::EFBIG) => ", which limits shared memory too (see `ulimit -f`)",
        _ => "",
    }
}

/// An error of a call that a system may forbid altogether, as sandboxes do: it then says which call.
#[must_use]
pub fn naming(call: &str, error: io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(libc::ENOSYS | libc::EPERM | libc::EACCES) => {
            io::Error::new(error.kind(), format!("the system forbids `{call}`: {error}"))
        }
        _ => error,
    }
}

/// Whether an error says that this process, or the system, may have no more open files.
#[must_use]
pub fn is_out_of_descriptors(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
}
