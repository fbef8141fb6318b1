//! This machine, this process and their clocks.

use std::io;
use std::sync::OnceLock;

use crate::errors::check;

/// Random bytes that nobody can guess.
///
/// # Errors
/// When the system has none.
pub fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    // SAFETY: pointer and length are those of a live array.
    let got = check(unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), N, 0) })?;
    if got == N { Ok(bytes) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

/// Current time of this host's monotonic clock, ns.
#[must_use]
pub fn monotonic_ns() -> u64 {
    read_clock(libc::CLOCK_MONOTONIC)
}

/// Processor time of this process, all threads together, ns.
#[must_use]
pub fn processor_ns() -> u64 {
    read_clock(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// Processor time of another process, all threads together, ns; `None`: there is no such process.
#[must_use]
pub fn processor_ns_of(pid: u32) -> Option<u64> {
    let mut clock = 0;
    // SAFETY: `clock` is a valid place to write a number to.
    let found = unsafe { libc::clock_getcpuclockid(pid.cast_signed(), &raw mut clock) } == 0;
    (found && pid != 0).then(|| read_clock(clock))
}

/// Processor time of this thread, ns.
#[must_use]
pub fn thread_ns() -> u64 {
    read_clock(libc::CLOCK_THREAD_CPUTIME_ID)
}

fn read_clock(clock: libc::clockid_t) -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is a valid place to write a timespec to.
    unsafe { libc::clock_gettime(clock, &raw mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Raises the soft limit of open files to the hard one: a grid needs two for each worker.
/// Returns the limit.
#[must_use]
pub fn raise_file_limit() -> u64 {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else { return 1024 };
    if soft < hard && setrlimit(Resource::RLIMIT_NOFILE, hard, hard).is_ok() { hard } else { soft }
}

/// Number of threads of this process. A thread that has just ended may be counted for a moment.
pub fn threads() -> usize {
    let tasks: io::Result<usize> = std::fs::read_dir("/proc/self/task").map(Iterator::count);
    tasks.unwrap_or(1)
}

/// Ensures that descriptors 0 to 2 are open. Otherwise another file could get these numbers, and be read and written
/// as the standard streams, by worker processes too.
///
/// # Errors
/// When `/dev/null` cannot be opened.
pub fn open_standard_streams() -> io::Result<()> {
    loop {
        // SAFETY: plain system calls; the descriptor is new.
        unsafe {
            if (0..3).all(|number| libc::fcntl(number, libc::F_GETFD) >= 0) {
                return Ok(());
            }
            // Opens the lowest free number.
            check(libc::open(c"/dev/null".as_ptr(), libc::O_RDWR) as isize)?;
        }
    }
}

/// Memory and swap space of this machine, bytes; the maximum value if unknown.
#[must_use]
pub fn total_memory() -> u64 {
    static TOTAL: OnceLock<u64> = OnceLock::new();
    *TOTAL.get_or_init(|| {
        // SAFETY: an all-zero value is valid, and a valid place to write to.
        let (status, info) = unsafe {
            let mut info: libc::sysinfo = std::mem::zeroed();
            (libc::sysinfo(&raw mut info), info)
        };
        if status != 0 {
            return u64::MAX;
        }
        (info.totalram + info.totalswap).saturating_mul(info.mem_unit.into())
    })
}

/// Number of processes that the kernel's out-of-memory killer has ended since boot.
#[must_use]
pub fn out_of_memory_kills() -> u64 {
    std::fs::read_to_string("/proc/vmstat")
        .ok()
        .and_then(|text| text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.parse().ok()))
        .unwrap_or(0)
}

/// Identifies the running kernel instance: equal ids share a monotonic clock.
#[must_use]
pub fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .map(|id| id.trim().to_owned())
        .unwrap_or_default()
}

/// The name of this host.
#[must_use]
pub fn host_name() -> String {
    nix::unistd::gethostname()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_else(|_| "localhost".into())
}
