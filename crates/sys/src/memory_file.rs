//! Memory files, shared by passing their descriptors, and mappings of them.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::errors::{check, naming};

/// The size of a huge page, bytes.
pub const HUGE_PAGE: usize = 2 << 20;

/// Maximum file size of this process, bytes. It applies to shared memory too.
#[must_use]
pub fn file_size_limit() -> u64 {
    use nix::sys::resource::{Resource, getrlimit};
    getrlimit(Resource::RLIMIT_FSIZE).map_or(u64::MAX, |(soft, _)| soft)
}

/// Creates memory that can be shared by passing its descriptor. It is freed with its last user. Its length is fixed:
/// a reader of memory that another process has shortened would die of SIGBUS.
///
/// # Errors
/// When there is no descriptor or no memory for it, or the limit of file sizes forbids it.
pub fn memory_file(name: &CStr, len: u64) -> io::Result<OwnedFd> {
    if len > file_size_limit() {
        // The system would report the same error, and kill the process with SIGXFSZ.
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

/// Moves a file to a descriptor number that `select` cannot use, if many files are open. The lower numbers are left
/// to the program, whose own files would otherwise not fit into `select`.
pub fn beyond_select(file: OwnedFd) -> OwnedFd {
    /// Lower numbers stay as they are, because growing the descriptor table takes time.
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

/// Makes a memory file permanently read-only, except for existing writable mappings. Linux before 5.1 cannot do that.
///
/// # Errors
/// When the file does not take seals.
pub fn seal_for_others(file: BorrowedFd<'_>) -> io::Result<()> {
    match add_seals(file, libc::F_SEAL_FUTURE_WRITE | libc::F_SEAL_SEAL) {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => Ok(()),
        sealed => sealed,
    }
}

/// Whether a file from another process cannot be shortened.
#[must_use]
pub fn keeps_its_length(file: BorrowedFd<'_>) -> bool {
    seals_of(file) & libc::F_SEAL_SHRINK != 0
}

/// Fixes the properties of a memory file that its readers rely on, for readers who trust nobody.
///
/// # Errors
/// When the system refuses that.
pub fn seal_for_strangers(file: BorrowedFd<'_>) -> io::Result<()> {
    if seals_of(file) & libc::F_SEAL_SEAL != 0 {
        return Ok(());
    }
    add_seals(file, libc::F_SEAL_SHRINK | libc::F_SEAL_SEAL)
}

/// Checks a file that a stranger has sent as memory of `len` bytes. Nothing that the stranger does can make it shorter
/// or unwritable, or end a process that uses its mapping.
///
/// # Errors
/// What is wrong with it.
pub fn check_foreign_memory(file: BorrowedFd<'_>, len: u64) -> io::Result<()> {
    let refuse = |text: String| Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    // Files with huge pages of their own end a process when no page is left.
    if nix::sys::statfs::fstatfs(file)?.filesystem_type() != nix::sys::statfs::TMPFS_MAGIC {
        return refuse("shared memory that is not a memory file".to_owned());
    }
    let seals = seals_of(file);
    if seals & (libc::F_SEAL_SHRINK | libc::F_SEAL_SEAL) != libc::F_SEAL_SHRINK | libc::F_SEAL_SEAL
    {
        return refuse("shared memory that somebody can shorten or seal".to_owned());
    }
    // SAFETY: plain system call.
    let access = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GETFL) } & libc::O_ACCMODE;
    if access != libc::O_RDWR || seals & (libc::F_SEAL_WRITE | libc::F_SEAL_FUTURE_WRITE) != 0 {
        return refuse("shared memory that cannot be written to".to_owned());
    }
    let size = nix::sys::stat::fstat(file)?.st_size;
    if len == 0 || u64::try_from(size).is_ok_and(|size| size < len) {
        return refuse(format!("shared memory of {size} bytes was announced as {len}"));
    }
    Ok(())
}

fn seals_of(file: BorrowedFd<'_>) -> libc::c_int {
    // SAFETY: plain system call. It fails for files without seals.
    unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GET_SEALS) }.max(0)
}

/// Returns the memory of a file to the system. Its contents become zeros for everybody who has mapped it.
///
/// # Errors
/// As `fallocate(2)`: `EPERM` where the file is sealed against that.
pub fn empty(file: BorrowedFd<'_>, len: u64) -> io::Result<()> {
    let len = i64::try_from(len).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    // SAFETY: plain system call; the readers of the file no longer need its content.
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

/// Number of mappings in this process.
static MAPPINGS: AtomicU64 = AtomicU64::new(0);
/// Share of the kernel's limit of mappings per process that shared memory may use, as a divisor.
const PART: u64 = 4;

/// Whether this process has so many mappings that no more should be kept. When the kernel refuses more, no memory of
/// any kind can be allocated.
#[must_use]
pub fn mappings_are_many() -> bool {
    static MOST: OnceLock<u64> = OnceLock::new();
    let most = *MOST.get_or_init(|| {
        let limit = std::fs::read_to_string("/proc/sys/vm/max_map_count").ok();
        limit.and_then(|text| text.trim().parse().ok()).unwrap_or(65_530) / PART
    });
    MAPPINGS.load(Ordering::Relaxed) >= most
}

// SAFETY: a mapping is plain memory, valid from any thread until it is unmapped in `drop`.
unsafe impl Send for Mapping {}
// SAFETY: as above; writers through the pointer are responsible for races.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps the first `len` bytes of a memory file, shared.
    ///
    /// # Errors
    /// When the file is shorter than `len` (reading there would kill the process), or the address space has no room.
    pub fn new(file: BorrowedFd<'_>, len: usize, writable: bool) -> io::Result<Mapping> {
        let size = nix::sys::stat::fstat(file)?.st_size;
        if len == 0 || usize::try_from(size).is_ok_and(|size| size < len) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("shared memory of {size} bytes was announced as {len}"),
            ));
        }
        let access = if writable { libc::PROT_READ | libc::PROT_WRITE } else { libc::PROT_READ };
        if len < HUGE_PAGE {
            let start = map(std::ptr::null_mut(), len, access, libc::MAP_SHARED, Some(file), 0)?;
            return Ok(Mapping::counted(start, len));
        }
        // Huge pages are mapped as such only at aligned addresses: reserve an aligned range and map the file there.
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let whole = len.checked_add(HUGE_PAGE).ok_or(io::ErrorKind::OutOfMemory)?;
        let reserved = map(std::ptr::null_mut(), whole, libc::PROT_NONE, flags, None, 0)?;
        let before = reserved.as_ptr().align_offset(HUGE_PAGE);
        // SAFETY: `before` is less than HUGE_PAGE, and so within the reserved range.
        let start = unsafe { reserved.add(before) };
        let flags = libc::MAP_SHARED | libc::MAP_FIXED;
        let mapped = map(start.as_ptr(), len, access, flags, Some(file), 0);
        // SAFETY: plain system call.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        let end = len.next_multiple_of(usize::try_from(page).unwrap_or(HUGE_PAGE).max(1));
        // SAFETY: the unused part of the reserved range, or all of it: nobody else knows its address.
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

    /// Maps `len` bytes of a memory file from `offset`, shared and writable. Both are multiples of the page size.
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

    /// The address of the byte at `offset`, if `len` bytes from there lie inside.
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

/// `mmap(2)` of a file from `offset`. With `MAP_FIXED`, the caller must own the address range.
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
    // SAFETY: the kernel chooses an unused address, or the caller has reserved it.
    let start = unsafe { libc::mmap(place.cast(), len, access, flags, file, offset) };
    if start == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    NonNull::new(start.cast()).ok_or_else(|| io::ErrorKind::OutOfMemory.into())
}

/// Allocates a number, initially 0, that this process shares with its later children by fork. It is never freed.
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

/// Moves a stretch of memory into huge pages, now.
///
/// # Errors
/// As `madvise(2)`: `EINVAL` where the kernel cannot.
pub fn collapse(start: NonNull<u8>, len: usize) -> io::Result<()> {
    // SAFETY: the content of the memory does not change, only its location.
    let result = unsafe { libc::madvise(start.as_ptr().cast(), len, libc::MADV_COLLAPSE) };
    check(result as isize).map(|_| ())
}

/// Asks the kernel for huge pages for new memory that is about to be filled, which then takes less than half the
/// time. The content of the memory does not change.
pub fn ask_for_huge_pages(start: NonNull<u8>, len: usize) {
    let before = start.as_ptr().align_offset(HUGE_PAGE);
    let Some(whole) = len.checked_sub(before).map(|rest| rest / HUGE_PAGE * HUGE_PAGE) else {
        return;
    };
    if whole >= HUGE_PAGE {
        // SAFETY: the stretch lies inside the caller's, and is only marked. Where the kernel refuses, pages are
        // small.
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
