//! Captures what this process, C code and its child processes write to standard output and error.

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Condvar, Mutex, Once, OnceLock, PoisonError};
use std::time::Duration;

use nix::fcntl::{FallocateFlags, FcntlArg, OFlag, fallocate, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::signal::Signal::{SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, sigaction};

/// Maximum length of the captured output of a stream, bytes. What comes last stays.
const MAX_CAPTURED: u64 = 1 << 20;
/// How often memory of output beyond that is freed.
const TRIM: Duration = Duration::from_millis(100);
/// Unit of `st_blocks`, bytes.
const BLOCK: u64 = 512;
/// Memory is freed in units of this size, bytes.
const PAGE: u64 = 64 << 10;

/// Output of a stream.
#[derive(Debug, PartialEq, Eq)]
pub struct CapturedOutput {
    /// The last bytes.
    pub bytes: Vec<u8>,
    /// How many bytes were before these.
    pub dropped: u64,
}

/// Both standard streams, captured until `end` or until it is dropped. One at a time.
#[derive(Debug)]
pub struct OutputCapture {
    files: Arc<[File; 2]>,
    /// Where the streams lead otherwise.
    originals: [OwnedFd; 2],
}

impl OutputCapture {
    /// Captures output from now on. Output that C or Fortran has buffered goes where it would have gone.
    ///
    /// # Errors
    /// When there are no descriptors, or no memory.
    pub fn begin() -> io::Result<OutputCapture> {
        flush();
        let originals = [
            io::stdout().as_fd().try_clone_to_owned()?,
            io::stderr().as_fd().try_clone_to_owned()?,
        ];
        let files = Arc::new([new_file(c"gridrpc-stdout")?, new_file(c"gridrpc-stderr")?]);
        let capture = OutputCapture { files, originals };
        OutputCapture::lead_to(capture.files[0].as_fd(), capture.files[1].as_fd())?;
        let ([stdout, stderr], [to_stdout, to_stderr]) = (&*capture.files, &capture.originals);
        note_running([
            nix::unistd::getpid().as_raw(),
            stdout.as_raw_fd(),
            to_stdout.as_raw_fd(),
            stderr.as_raw_fd(),
            to_stderr.as_raw_fd(),
        ]);
        Trimmer::get().watch(Some(Arc::clone(&capture.files)));
        Ok(capture)
    }

    /// Has the streams lead where they did before. Returns standard output and error.
    ///
    /// # Errors
    /// When the output cannot be read.
    pub fn end(self) -> io::Result<[CapturedOutput; 2]> {
        let files = Arc::clone(&self.files);
        drop(self);
        Ok([last_of(&files[0])?, last_of(&files[1])?])
    }

    fn lead_to(stdout: BorrowedFd<'_>, stderr: BorrowedFd<'_>) -> io::Result<()> {
        nix::unistd::dup2_stdout(stdout)?;
        nix::unistd::dup2_stderr(stderr)?;
        Ok(())
    }
}

impl Drop for OutputCapture {
    fn drop(&mut self) {
        flush();
        note_running([-1; 5]);
        Trimmer::get().watch(None);
        let [stdout, stderr] = &self.originals;
        // It cannot fail: the descriptors exist.
        let _ = OutputCapture::lead_to(stdout.as_fd(), stderr.as_fd());
    }
}

/// The process of the running capture, and its descriptors: of standard output its file and the original, and of
/// standard error the same. -1: no capture runs.
static RUNNING: [AtomicI32; 5] = [const { AtomicI32::new(-1) }; 5];
/// Tail of a stream that is shown when the process ends, bytes.
const SHOWN: i64 = 4096;

/// Has this process show the end of captured output, where it would have gone without the capture, if C's `exit` or a
/// fatal signal that nothing handles ends it in the meantime.
pub fn show_output_at_a_crash() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        // SAFETY: the function needs nothing of this program but RUNNING.
        unsafe { libc::atexit(show_at_exit) };
        let flags = SaFlags::SA_ONSTACK;
        let action = SigAction::new(SigHandler::Handler(show_and_end), flags, SigSet::empty());
        for signal in [SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT] {
            // SAFETY: `show_and_end` makes only calls that are allowed in a signal handler. Handlers of others stay.
            unsafe {
                if let Ok(before) = sigaction(signal, &action)
                    && !matches!(before.handler(), SigHandler::SigDfl)
                {
                    let _ = sigaction(signal, &before);
                }
            }
        }
    });
}

extern "C" fn show_at_exit() {
    if RUNNING[1].load(Ordering::Relaxed) >= 0 {
        flush();
        show();
    }
}

extern "C" fn show_and_end(signal: i32) {
    show();
    // SAFETY: both are allowed in a signal handler. The signal ends the process when the handler returns.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
}

/// Copies the end of the captured streams to where they lead otherwise.
fn show() {
    let [process, stdout, to_stdout, stderr, to_stderr] =
        RUNNING.each_ref().map(|descriptor| descriptor.load(Ordering::Relaxed));
    // A child process that the function has forked has no output of its own.
    if process != nix::unistd::getpid().as_raw() {
        return;
    }
    for (file, original) in [(stdout, to_stdout), (stderr, to_stderr)] {
        let mut buffer = [0_u8; 512];
        // SAFETY: system calls, which are allowed in a signal handler, on a buffer that lives on the stack. Of wrong
        // descriptors they return an error.
        unsafe {
            let mut at = (libc::lseek(file, 0, libc::SEEK_END) - SHOWN).max(0);
            loop {
                let count = libc::pread(file, buffer.as_mut_ptr().cast(), buffer.len(), at);
                let Ok(length @ 1..) = usize::try_from(count) else { break };
                if libc::write(original, buffer.as_ptr().cast(), length) < 0 {
                    break;
                }
                at += count as i64;
            }
        }
    }
}

fn note_running(running: [i32; 5]) {
    for (place, value) in RUNNING.iter().zip(running) {
        place.store(value, Ordering::Relaxed);
    }
}

/// A file in memory to whose end everything is appended.
fn new_file(name: &CStr) -> io::Result<File> {
    let file = File::from(memfd_create(name, MFdFlags::MFD_CLOEXEC)?);
    // A child process that opens /dev/stdout has an offset of its own.
    fcntl(&file, FcntlArg::F_SETFL(OFlag::O_APPEND))?;
    Ok(file)
}

/// The end of a file. Child processes may still write to it.
fn last_of(file: &File) -> io::Result<CapturedOutput> {
    let size = file.metadata()?.size();
    let dropped = size.saturating_sub(MAX_CAPTURED);
    let mut bytes = vec![0; usize::try_from(size - dropped).unwrap_or(0)];
    let mut at = 0;
    while at < bytes.len() {
        match file.read_at(&mut bytes[at..], dropped + at as u64) {
            // A child process has shortened it.
            Ok(0) => break,
            Ok(count) => at += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(at);
    Ok(CapturedOutput { bytes, dropped })
}

/// Frees the memory of output that nobody will read, in a thread of its own.
struct Trimmer {
    files: Mutex<Option<Arc<[File; 2]>>>,
    changed: Condvar,
}

impl Trimmer {
    /// That of this process, with its thread. A function that the thread cannot be started for is still captured.
    fn get() -> &'static Trimmer {
        static TRIMMER: OnceLock<Trimmer> = OnceLock::new();
        static STARTED: OnceLock<()> = OnceLock::new();
        let trimmer =
            TRIMMER.get_or_init(|| Trimmer { files: Mutex::new(None), changed: Condvar::new() });
        STARTED.get_or_init(|| {
            let thread = std::thread::Builder::new().name("gridrpc-output".to_owned());
            let _ = thread.spawn(|| trimmer.run());
        });
        trimmer
    }

    fn watch(&self, files: Option<Arc<[File; 2]>>) {
        let begins = files.is_some();
        *self.files.lock().unwrap_or_else(PoisonError::into_inner) = files;
        if begins {
            self.changed.notify_one();
        }
    }

    fn run(&self) {
        loop {
            let watched = self.files.lock().unwrap_or_else(PoisonError::into_inner);
            let watched = self
                .changed
                .wait_while(watched, |files| files.is_none())
                .unwrap_or_else(PoisonError::into_inner);
            let files = watched.clone();
            drop(watched);
            files.iter().flat_map(|files| files.iter()).for_each(trim);
            drop(files);
            std::thread::sleep(TRIM);
        }
    }
}

/// Frees pages far from the end.
fn trim(file: &File) {
    let Ok(known) = file.metadata() else { return };
    if known.blocks() * BLOCK < 2 * MAX_CAPTURED {
        return;
    }
    let unread = known.size().saturating_sub(MAX_CAPTURED) / PAGE * PAGE;
    let flags = FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE;
    if let Ok(unread) = i64::try_from(unread)
        && unread > 0
    {
        // Pages that stay only take memory.
        let _ = fallocate(file, flags, 0, unread);
    }
}

/// Writes out what C and GNU Fortran have buffered.
fn flush() {
    // SAFETY: flushes all of C's output streams.
    unsafe { libc::fflush(std::ptr::null_mut()) };
    // SAFETY: RTLD_NOLOAD loads nothing: this finds the library if the process has it. The symbol is that of the
    // intrinsic FLUSH, which flushes all units for a null pointer.
    unsafe {
        let library =
            libc::dlopen(c"libgfortran.so.5".as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD);
        if library.is_null() {
            return;
        }
        let flush = libc::dlsym(library, c"_gfortran_flush_i4".as_ptr());
        if !flush.is_null() {
            let flush = std::mem::transmute::<*mut libc::c_void, extern "C" fn(*const i32)>(flush);
            flush(std::ptr::null());
        }
        libc::dlclose(library);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(bytes: &[u8], times: usize) -> File {
        use std::io::Write;
        let mut file = new_file(c"test").unwrap();
        for _ in 0..times {
            file.write_all(bytes).unwrap();
            trim(&file);
        }
        file
    }

    #[test]
    fn output_is_read_whole() {
        assert_eq!(
            last_of(&written(b"", 0)).unwrap(),
            CapturedOutput { bytes: vec![], dropped: 0 }
        );
        let few = last_of(&written(b"lines\n", 2)).unwrap();
        assert_eq!(few, CapturedOutput { bytes: b"lines\nlines\n".to_vec(), dropped: 0 });
    }

    #[test]
    fn the_end_of_much_output_stays_and_the_rest_takes_no_memory() {
        let line = vec![b'a'; 1 << 16];
        let file = written(&line, 100);
        let last = last_of(&file).unwrap();
        assert_eq!((last.bytes.len() as u64, last.dropped), (MAX_CAPTURED, 84 << 16));
        assert!(last.bytes.iter().all(|byte| *byte == b'a'));
        assert!(file.metadata().unwrap().blocks() * BLOCK <= 2 * MAX_CAPTURED);
    }
}
