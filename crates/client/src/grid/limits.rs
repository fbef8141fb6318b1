//! Limit on the number of workers on this system.

use gridrpc_sys::fd_limit;

use crate::error::GridError;

const MOST_WORKERS: u32 = 100_000;
/// Descriptors that a worker uses in the client: its connection, standard output and error.
const DESCRIPTORS_PER_WORKER: u64 = 3;
/// Descriptors reserved for everything else.
const OTHER_DESCRIPTORS: u64 = 64;

/// Checks that this many workers fit. Raises the file limit where that takes no time.
pub(super) fn check_workers(workers: u32) -> Result<(), GridError> {
    if workers == 0 || workers > MOST_WORKERS {
        return Err(GridError::Config(format!(
            "{workers} workers: choose from 1 to {MOST_WORKERS}"
        )));
    }
    let limit = gridrpc_sys::raise_file_limit();
    let open = std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count) as u64;
    let need = open + OTHER_DESCRIPTORS + DESCRIPTORS_PER_WORKER * u64::from(workers);
    if need > limit {
        return Err(GridError::Config(format!(
            "{workers} workers need {need} open files, but the limit is {limit}: raise it with \
             `ulimit -n {need}`, or use fewer workers"
        )));
    }
    if gridrpc_sys::threads() == 1 {
        fd_limit::make(need);
    }
    Ok(())
}
