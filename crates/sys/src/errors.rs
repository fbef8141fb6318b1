//! System errors.

use std::io;

/// Converts the result of a system call, which is negative on error.
pub(crate) fn check(result: isize) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

/// The limit behind an error, to append to its text if the text does not name it.
#[must_use]
pub fn limit_of(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::EFBIG) => ", which limits shared memory too (see `ulimit -f`)",
        _ => "",
    }
}

/// Adds the call's name to the error of a call that a system may forbid altogether, as sandboxes do.
#[must_use]
pub fn naming(call: &str, error: io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(libc::ENOSYS | libc::EPERM | libc::EACCES) => {
            io::Error::new(error.kind(), format!("the system forbids `{call}`: {error}"))
        }
        _ => error,
    }
}

/// Whether an error means that this process, or the system, may have no more open files.
#[must_use]
pub fn is_out_of_descriptors(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
}
