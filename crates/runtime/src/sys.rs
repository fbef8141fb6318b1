//! The system calls that the standard library does not offer, made safe.

use std::collections::VecDeque;
use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr::NonNull;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use gridrpc_wire::MAX_DESCRIPTORS;

use crate::pages::HUGE;

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

/// Now, on the monotonic clock of this host, ns.
#[must_use]
pub fn monotonic_ns() -> u64 {
    read_clock(libc::CLOCK_MONOTONIC)
}

/// Processor time that this process has used, all threads together, ns.
#[must_use]
pub fn processor_ns() -> u64 {
    read_clock(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// Processor time that this thread has used, ns.
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

/// What a message over this TCP connection takes to go there and back, as the kernel has found.
///
/// # Errors
/// As `getsockopt(2)`, for a socket of another kind.
pub fn round_trip(socket: BorrowedFd<'_>) -> io::Result<Duration> {
    // SAFETY: the structure is plain numbers, and the kernel writes no more than its size.
    let info = unsafe {
        let mut info: libc::tcp_info = std::mem::zeroed();
        let mut size = size_of::<libc::tcp_info>() as libc::socklen_t;
        let level = libc::IPPROTO_TCP;
        let place = (&raw mut info).cast();
        let result =
            libc::getsockopt(socket.as_raw_fd(), level, libc::TCP_INFO, place, &raw mut size);
        check(result as isize)?;
        info
    };
    Ok(Duration::from_micros(info.tcpi_rtt.into()))
}

fn check(result: isize) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

const CONTROL_LEN: usize = 1152;

/// Room for the control message that carries descriptors, aligned as the kernel wants it.
#[repr(C, align(8))]
struct Control([u8; CONTROL_LEN]);

const _: () = assert!(CONTROL_LEN >= 16 + 4 * MAX_DESCRIPTORS as usize + 8);

/// Sends bytes, with descriptors attached to the first of them. Never raises SIGPIPE.
///
/// # Errors
/// As `sendmsg(2)`.
pub fn send(socket: BorrowedFd<'_>, bytes: &[u8], descriptors: &[RawFd]) -> io::Result<usize> {
    let flags = libc::MSG_NOSIGNAL;
    if descriptors.is_empty() {
        return send_with(socket, bytes, flags);
    }
    let mut control = Control([0; CONTROL_LEN]);
    let mut part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    let size = size_of_val(descriptors) as u32;
    // SAFETY: an all-zero msghdr is valid. The header lies in `control`, which is large enough for
    // it and for MAX_DESCRIPTORS descriptors; all pointers outlive the call.
    unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = (&raw mut control).cast();
        message.msg_controllen = libc::CMSG_SPACE(size) as usize;
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        (*header).cmsg_level = libc::SOL_SOCKET;
        (*header).cmsg_type = libc::SCM_RIGHTS;
        (*header).cmsg_len = libc::CMSG_LEN(size) as usize;
        let data = libc::CMSG_DATA(header).cast::<RawFd>();
        std::ptr::copy_nonoverlapping(descriptors.as_ptr(), data, descriptors.len());
        check(libc::sendmsg(socket.as_raw_fd(), &raw const message, flags))
    }
}

/// The same for bytes that others follow at once: they go in one packet with those, or a moment later.
///
/// # Errors
/// As `send(2)`.
pub fn send_before(socket: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<usize> {
    send_with(socket, bytes, libc::MSG_NOSIGNAL | libc::MSG_MORE)
}

fn send_with(socket: BorrowedFd<'_>, bytes: &[u8], flags: i32) -> io::Result<usize> {
    // SAFETY: pointer and length are those of a live slice.
    check(unsafe { libc::send(socket.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), flags) })
}

/// How long a blocking socket waits for bytes before it says `WouldBlock`; zero: for ever.
///
/// # Errors
/// As `setsockopt(2)`.
pub fn wait_at_most(socket: BorrowedFd<'_>, longest: Duration) -> io::Result<()> {
    let seconds = i64::try_from(longest.as_secs()).unwrap_or(i64::MAX);
    let longest = nix::sys::time::TimeVal::new(seconds, longest.subsec_micros().into());
    Ok(nix::sys::socket::setsockopt(&socket, nix::sys::socket::sockopt::ReceiveTimeout, &longest)?)
}

/// Receives bytes into `buffer` and puts descriptors that came along behind `descriptors`; none in the
/// place of those that were lost, as this process may have no more. Returns 0 at the end of the stream.
///
/// # Errors
/// As `recvmsg(2)`.
pub fn receive(
    socket: BorrowedFd<'_>,
    buffer: &mut [u8],
    descriptors: &mut VecDeque<Option<OwnedFd>>,
) -> io::Result<usize> {
    let mut control = Control([0; CONTROL_LEN]);
    let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    // SAFETY: an all-zero msghdr is valid; all pointers outlive the call; control headers are
    // walked as the kernel left them, and each descriptor found is new and ours alone.
    unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = (&raw mut control).cast();
        message.msg_controllen = CONTROL_LEN;
        let flags = libc::MSG_CMSG_CLOEXEC;
        let length = check(libc::recvmsg(socket.as_raw_fd(), &raw mut message, flags))?;
        let mut header = libc::CMSG_FIRSTHDR(&raw const message);
        while !header.is_null() {
            if (*header).cmsg_level == libc::SOL_SOCKET && (*header).cmsg_type == libc::SCM_RIGHTS {
                let bytes = (*header).cmsg_len - libc::CMSG_LEN(0) as usize;
                let data = libc::CMSG_DATA(header).cast::<RawFd>();
                for index in 0..bytes / size_of::<RawFd>() {
                    let descriptor = OwnedFd::from_raw_fd(data.add(index).read_unaligned());
                    descriptors.push_back(Some(descriptor));
                }
            }
            header = libc::CMSG_NXTHDR(&raw const message, header);
        }
        if message.msg_flags & libc::MSG_CTRUNC != 0 {
            descriptors.push_back(None);
        }
        Ok(length)
    }
}

/// Receives at most `limit` bytes and appends them. Returns 0 at the end of the stream.
///
/// # Errors
/// As `recv(2)`.
pub fn receive_behind(
    socket: BorrowedFd<'_>,
    bytes: &mut Vec<u8>,
    limit: usize,
) -> io::Result<usize> {
    let old = bytes.len();
    let free = bytes.spare_capacity_mut();
    let room = free.len().min(limit);
    // SAFETY: the kernel writes at most `room` bytes behind the old length, within the capacity,
    // and the length grows by as many as it wrote.
    unsafe {
        let count = check(libc::recv(socket.as_raw_fd(), free.as_mut_ptr().cast(), room, 0))?;
        bytes.set_len(old + count);
        Ok(count)
    }
}

/// Receives bytes into `place`. Returns 0 at the end of the stream.
///
/// # Errors
/// As `recv(2)`.
pub fn receive_into(socket: BorrowedFd<'_>, place: &mut [u8]) -> io::Result<usize> {
    // SAFETY: the kernel writes at most as many bytes as `place` has.
    check(unsafe { libc::recv(socket.as_raw_fd(), place.as_mut_ptr().cast(), place.len(), 0) })
}

/// How long a file of this process may become, bytes. That holds for shared memory too.
#[must_use]
pub fn file_size_limit() -> u64 {
    use nix::sys::resource::{Resource, getrlimit};
    getrlimit(Resource::RLIMIT_FSIZE).map_or(u64::MAX, |(soft, _)| soft)
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

/// New memory that can be shared by passing its descriptor; it goes with its last user. Its length is
/// fixed for good: a reader of memory that somebody else has shortened would end by SIGBUS.
///
/// # Errors
/// When there is no descriptor or no memory for it, or the limit of file sizes forbids it.
pub fn memory_file(name: &CStr, len: u64) -> io::Result<OwnedFd> {
    if len > file_size_limit() {
        // The system would say so too, and end the process with SIGXFSZ.
        return Err(io::Error::from_raw_os_error(libc::EFBIG));
    }
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    // SAFETY: `name` is a C string; the descriptor returned is new and ours.
    let file = unsafe {
        let fd = libc::memfd_create(name.as_ptr(), flags);
        check(fd as isize).map_err(|error| naming("memfd_create", error))?;
        beyond_select(OwnedFd::from_raw_fd(fd))
    };
    let len = i64::try_from(len).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    // SAFETY: plain system call on a descriptor that we own.
    check(unsafe { libc::ftruncate(file.as_raw_fd(), len) } as isize)?;
    add_seals(file.as_fd(), libc::F_SEAL_SHRINK | libc::F_SEAL_GROW)?;
    Ok(file)
}

/// The same file with a number that `select` cannot take, if many files are open: the lower numbers are left to
/// the program, whose own files would not fit into `select` otherwise.
pub(crate) fn beyond_select(file: OwnedFd) -> OwnedFd {
    /// Numbers below stay as they are: a table for more of them takes the system time to make.
    const FEW: i32 = 256;
    if file.as_raw_fd() < FEW {
        return file;
    }
    // SAFETY: a system call on a descriptor that we own; the new one is ours, if there is one.
    unsafe {
        let number = libc::FD_SETSIZE as i32;
        let higher = libc::fcntl(file.as_raw_fd(), libc::F_DUPFD_CLOEXEC, number);
        // The limit may be lower.
        if higher < 0 { file } else { OwnedFd::from_raw_fd(higher) }
    }
}

/// Makes a memory file read-only for good, but for the mappings that can write to it now. Linux before
/// 5.1 cannot do that.
///
/// # Errors
/// When the file does not take seals.
pub fn seal_for_others(file: BorrowedFd<'_>) -> io::Result<()> {
    match add_seals(file, libc::F_SEAL_FUTURE_WRITE | libc::F_SEAL_SEAL) {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => Ok(()),
        sealed => sealed,
    }
}

/// Whether nobody can shorten a file that somebody else has made.
#[must_use]
pub fn keeps_its_length(file: BorrowedFd<'_>) -> bool {
    // SAFETY: plain system call.
    let seals = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GET_SEALS) };
    seals >= 0 && seals & libc::F_SEAL_SHRINK != 0
}

/// Gives the memory of a file back to the system. Its contents are zeros from then on, for all who have
/// mapped it.
///
/// # Errors
/// As `fallocate(2)`: `EPERM` where the file is sealed against that.
pub fn empty(file: BorrowedFd<'_>, len: u64) -> io::Result<()> {
    let len = i64::try_from(len).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    // SAFETY: plain system call; who reads the file says that nobody needs what it holds.
    check(unsafe { libc::fallocate(file.as_raw_fd(), mode, 0, len) } as isize)?;
    Ok(())
}

fn add_seals(file: BorrowedFd<'_>, seals: libc::c_int) -> io::Result<()> {
    // SAFETY: plain system call.
    check(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) } as isize)?;
    Ok(())
}

/// A stretch of mapped memory, unmapped when dropped.
#[derive(Debug)]
pub struct Mapping {
    start: NonNull<u8>,
    len: usize,
}

/// How many there are in this process.
static MAPPINGS: AtomicU64 = AtomicU64::new(0);
/// Of the mappings that the kernel allows a process, those of shared memory are at most one part in so
/// many.
const PART: u64 = 4;

/// Whether this process has so many mappings that no more should be kept: when the kernel refuses more,
/// there is no memory of any kind.
#[must_use]
pub fn mappings_are_many() -> bool {
    static MOST: OnceLock<u64> = OnceLock::new();
    let most = *MOST.get_or_init(|| {
        let told = std::fs::read_to_string("/proc/sys/vm/max_map_count").ok();
        told.and_then(|text| text.trim().parse().ok()).unwrap_or(65_530) / PART
    });
    MAPPINGS.load(Ordering::Relaxed) >= most
}

// SAFETY: a mapping is plain memory, valid from any thread until it is unmapped in `drop`.
unsafe impl Send for Mapping {}
// SAFETY: as above; whoever writes through the pointer answers for races.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps the first `len` bytes of a memory file, shared.
    ///
    /// # Errors
    /// When the file is shorter than `len` (reading there would end the process), or there is no
    /// room in the address space.
    pub fn new(file: BorrowedFd<'_>, len: usize, writable: bool) -> io::Result<Mapping> {
        let size = nix::sys::stat::fstat(file)?.st_size;
        if len == 0 || usize::try_from(size).is_ok_and(|size| size < len) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("shared memory of {size} bytes was announced as {len}"),
            ));
        }
        let access = if writable { libc::PROT_READ | libc::PROT_WRITE } else { libc::PROT_READ };
        if len < HUGE {
            let start = map(std::ptr::null_mut(), len, access, libc::MAP_SHARED, Some(file), 0)?;
            return Ok(Mapping::counted(start, len));
        }
        // Huge pages are mapped as such only where the addresses are multiples of their size: a
        // place is reserved that has one, and the file put there.
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let whole = len.checked_add(HUGE).ok_or(io::ErrorKind::OutOfMemory)?;
        let reserved = map(std::ptr::null_mut(), whole, libc::PROT_NONE, flags, None, 0)?;
        let before = reserved.as_ptr().align_offset(HUGE);
        // SAFETY: `before` is less than HUGE, and so within what was reserved.
        let start = unsafe { reserved.add(before) };
        let flags = libc::MAP_SHARED | libc::MAP_FIXED;
        let mapped = map(start.as_ptr(), len, access, flags, Some(file), 0);
        // SAFETY: plain system call.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        let end = len.next_multiple_of(usize::try_from(page).unwrap_or(HUGE).max(1));
        // SAFETY: what was reserved and is not used, or all of it: nobody else knows of it.
        unsafe {
            if mapped.is_err() {
                libc::munmap(reserved.as_ptr().cast(), whole);
            } else {
                if before > 0 {
                    libc::munmap(reserved.as_ptr().cast(), before);
                }
                libc::munmap(start.add(end).as_ptr().cast(), whole - before - end);
            }
        }
        Ok(Mapping::counted(mapped?, len))
    }

    /// Maps `len` bytes of a memory file from `offset` on, shared and writable. Both are multiples of the
    /// length of a page.
    ///
    /// # Errors
    /// When the file ends before, or there is no room in the address space.
    pub fn part(file: BorrowedFd<'_>, offset: u64, len: usize) -> io::Result<Mapping> {
        let size = nix::sys::stat::fstat(file)?.st_size;
        if u64::try_from(size).is_ok_and(|size| size < offset + len as u64) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let start = map(std::ptr::null_mut(), len, access, libc::MAP_SHARED, Some(file), offset)?;
        Ok(Mapping::counted(start, len))
    }

    fn counted(start: NonNull<u8>, len: usize) -> Mapping {
        MAPPINGS.fetch_add(1, Ordering::Relaxed);
        Mapping { start, len }
    }

    /// Its length, bytes.
    #[must_use]
    #[allow(clippy::len_without_is_empty)] // it never is
    pub fn len(&self) -> usize {
        self.len
    }

    /// Where the byte at `offset` is, if `len` bytes from there lie inside.
    #[must_use]
    pub fn at(&self, offset: u64, len: u64) -> Option<NonNull<u8>> {
        let end = offset.checked_add(len)?;
        if end > self.len as u64 {
            return None;
        }
        // SAFETY: `offset` lies within the mapping or one behind it.
        Some(unsafe { self.start.add(offset as usize) })
    }
}

/// `mmap(2)` of a file from `offset` on. With `MAP_FIXED`, the place has to be the caller's.
fn map(
    place: *mut u8,
    len: usize,
    access: libc::c_int,
    flags: libc::c_int,
    file: Option<BorrowedFd<'_>>,
    offset: u64,
) -> io::Result<NonNull<u8>> {
    let offset = libc::off_t::try_from(offset).map_err(|_| io::ErrorKind::InvalidInput)?;
    let file = file.map_or(-1, |file| file.as_raw_fd());
    // SAFETY: the kernel chooses an address that nothing else uses, or the caller has reserved it.
    let start = unsafe { libc::mmap(place.cast(), len, access, flags, file, offset) };
    if start == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    NonNull::new(start.cast()).ok_or_else(|| io::ErrorKind::OutOfMemory.into())
}

/// A number, 0 at first, that this process has in common with those that it forks from now on. It is
/// never given back.
///
/// # Errors
/// When there is no memory.
pub fn common_number() -> io::Result<&'static AtomicU64> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
    let start = map(std::ptr::null_mut(), size_of::<AtomicU64>(), access, flags, None, 0)?;
    // SAFETY: mapped for good, at the start of a page, which is all zeros.
    Ok(unsafe { start.cast::<AtomicU64>().as_ref() })
}

/// Has the kernel move a stretch of memory into huge pages, now.
///
/// # Errors
/// As `madvise(2)`: `EINVAL` where the kernel cannot.
pub fn collapse(start: NonNull<u8>, len: usize) -> io::Result<()> {
    // SAFETY: what the memory holds does not change, only where it lies.
    let result = unsafe { libc::madvise(start.as_ptr().cast(), len, libc::MADV_COLLAPSE) };
    check(result as isize).map(|_| ())
}

/// Has the kernel make huge pages, where it can, of new memory that is about to be filled: it then takes
/// less than half the time. What the memory holds does not change.
pub fn ask_for_huge_pages(start: NonNull<u8>, len: usize) {
    let before = start.as_ptr().align_offset(HUGE);
    let Some(whole) = len.checked_sub(before).map(|rest| rest / HUGE * HUGE) else { return };
    if whole >= HUGE {
        // SAFETY: the stretch lies inside that of the caller, and is only marked. Where the kernel
        // refuses, pages are small.
        unsafe { libc::madvise(start.add(before).as_ptr().cast(), whole, libc::MADV_HUGEPAGE) };
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        MAPPINGS.fetch_sub(1, Ordering::Relaxed);
        // SAFETY: mapped in `new`; nobody can hold a reference that outlives `self`.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
    }
}

/// Raises the soft limit of open files to the hard one: a grid needs two for each worker.
/// Returns the limit.
#[must_use]
pub fn raise_file_limit() -> u64 {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else { return 1024 };
    if soft < hard && setrlimit(Resource::RLIMIT_NOFILE, hard, hard).is_ok() { hard } else { soft }
}

/// How many threads this process has. One that has just ended may be among them for a moment.
pub(crate) fn threads() -> usize {
    let tasks: io::Result<usize> = std::fs::read_dir("/proc/self/task").map(Iterator::count);
    tasks.unwrap_or(1)
}

/// Sees that descriptors 0 to 2 are open: whatever else got their numbers would be read and written as
/// the standard streams, by worker processes too.
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
            // The lowest number that is free.
            check(libc::open(c"/dev/null".as_ptr(), libc::O_RDWR) as isize)?;
        }
    }
}

/// Memory and swap space of this machine, bytes; as much as there can be if that is not known.
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

/// How often the kernel's out-of-memory killer has ended a process since boot.
#[must_use]
pub fn out_of_memory_kills() -> u64 {
    std::fs::read_to_string("/proc/vmstat")
        .ok()
        .and_then(|text| text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.parse().ok()))
        .unwrap_or(0)
}

/// Names the running instance of the kernel: equal ids share a monotonic clock.
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
