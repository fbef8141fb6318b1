//! Reserves room for a client's open files before it is needed.
//!
//! A process starts with room for 64 open files, or for as many as its parent had. The kernel doubles the table when
//! it is full, and a process with threads stalls until none of them can use the old table any more.

/// Reserves room for this many files, if this process may have as many.
pub fn make(files: u64) {
    let Ok(last) = i32::try_from(files.saturating_sub(1)) else { return };
    // SAFETY: plain system calls; the descriptor is new, so nobody else uses it.
    unsafe {
        let made = libc::fcntl(0, libc::F_DUPFD_CLOEXEC, last);
        if made >= 0 {
            libc::close(made);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Size of the kernel's file table.
    fn room() -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let size = status.lines().find_map(|line| line.strip_prefix("FDSize:"));
        size.and_then(|number| number.trim().parse().ok()).unwrap()
    }

    #[test]
    fn room_is_made_as_far_as_there_may_be_so_many_files() {
        let limit = crate::raise_file_limit();
        let more = room() + 1;
        make(more);
        assert!(room() >= more);
        make(limit.saturating_add(1));
        make(u64::MAX);
        assert!(room() <= limit);
    }
}
