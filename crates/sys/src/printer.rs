//! Writes to a standard stream of the client. The stream may be a pipe that nobody reads, so the reactor must not
//! block on it.

use std::os::fd::RawFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::status_line;

/// Maximum number of unwritten bytes. Further output is dropped.
const MOST: usize = 1 << 20;
/// How long the end of a grid waits for output to be written.
const SETTLE: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
struct Waiting {
    bytes: Vec<u8>,
    left_out: u64,
    /// Whether the writer thread exists.
    writing: bool,
}

/// A standard stream. A thread writes to it while there is output.
#[derive(Debug)]
pub struct Printer {
    number: RawFd,
    waiting: Mutex<Waiting>,
    written: Condvar,
}

impl Printer {
    /// Creates a printer for this standard stream.
    pub fn new(number: RawFd) -> Arc<Printer> {
        Arc::new(Printer { number, waiting: Mutex::default(), written: Condvar::new() })
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues the bytes, unless too many are unwritten.
    pub fn print(self: &Arc<Printer>, bytes: &[u8]) {
        let mut waiting = self.lock();
        if waiting.bytes.len() + bytes.len() > MOST {
            waiting.left_out += bytes.len() as u64;
            return;
        }
        waiting.bytes.extend_from_slice(bytes);
        if !waiting.writing {
            let printer = Arc::clone(self);
            let thread = std::thread::Builder::new().name("gridrpc-output".into());
            // Without a thread the output waits until one can start.
            waiting.writing = thread.spawn(move || printer.write_all()).is_ok();
        }
    }

    fn write_all(&self) {
        loop {
            let mut waiting = self.lock();
            let mut bytes = std::mem::take(&mut waiting.bytes);
            let left_out = std::mem::take(&mut waiting.left_out);
            if bytes.is_empty() && left_out == 0 {
                waiting.writing = false;
                self.written.notify_all();
                return;
            }
            drop(waiting);
            if left_out > 0 {
                let note = format!(
                    "gridrpc: {left_out} bytes that workers wrote are left out here, since nobody \
                     read what came before\n"
                );
                bytes.extend_from_slice(note.as_bytes());
            }
            self.write(&bytes);
        }
    }

    fn write(&self, mut bytes: &[u8]) {
        status_line::clear();
        while !bytes.is_empty() {
            // SAFETY: pointer and length are those of a live slice.
            let count = unsafe { libc::write(self.number, bytes.as_ptr().cast(), bytes.len()) };
            match usize::try_from(count) {
                Ok(count) => bytes = &bytes[count..],
                Err(_) => match std::io::Error::last_os_error().kind() {
                    std::io::ErrorKind::Interrupted => {}
                    // The client has made it non-blocking; there may be room a moment later.
                    std::io::ErrorKind::WouldBlock => std::thread::sleep(Duration::from_millis(1)),
                    // It has no reader.
                    _ => return,
                },
            }
        }
    }

    /// Waits a bounded time until everything has been written.
    pub fn settle(&self) {
        let waiting = self.lock();
        let going_on = |waiting: &mut Waiting| waiting.writing;
        drop(self.written.wait_timeout_while(waiting, SETTLE, going_on));
    }
}
