//! Signals: those listed in the configuration cancel all sessions and end the program, unless the program
//! handles them itself.
//!
//! Few operations are safe in a signal handler: this one passes the number on to a thread.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use nix::errno::Errno;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, raise, sigaction};

use crate::failure::Failure;

/// Handler of the program.
pub type Handler = unsafe extern "C" fn(i32);

/// Reaction to a signal.
#[derive(Clone, Copy, Debug)]
enum Reaction {
    /// Ends the program and its workers.
    End,
    /// Calls the program's handler.
    Call(Handler),
}

#[derive(Debug, Default)]
struct Inner {
    reactions: HashMap<i32, Reaction>,
    /// Earlier actions, to restore.
    before: HashMap<i32, SigAction>,
    /// Pipe to the thread; 0 ends it.
    thread: Option<UnixStream>,
}

/// Signals taken over from the program.
#[derive(Debug, Default)]
pub struct Signals {
    inner: Mutex<Inner>,
}

/// Signals that errors of the program raise in the faulting thread: no other thread can handle them.
const DIRECTLY: [Signal; 8] = [
    Signal::SIGSEGV,
    Signal::SIGBUS,
    Signal::SIGFPE,
    Signal::SIGILL,
    Signal::SIGABRT,
    Signal::SIGTRAP,
    Signal::SIGSYS,
    Signal::SIGPIPE,
];

/// Pipe from the handler to the thread.
static PIPE: AtomicI32 = AtomicI32::new(-1);

extern "C" fn pass_on(number: i32) {
    let errno = Errno::last_raw();
    let byte = [number as u8];
    // SAFETY: write is async-signal-safe. If it fails, nobody reads any more.
    unsafe { libc::write(PIPE.load(Ordering::Relaxed), byte.as_ptr().cast(), 1) };
    Errno::set_raw(errno);
}

fn signal(number: i32) -> Result<Signal, Failure> {
    Signal::try_from(number).map_err(|_| Failure::other(format!("there is no signal {number}")))
}

fn refused(signal: Signal, error: Errno) -> Failure {
    Failure::other(format!("{signal} cannot be handled: {error}"))
}

impl Signals {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes over the signals that have no handler.
    pub fn take_over(self: &Arc<Signals>, numbers: &[i32]) -> Result<(), Failure> {
        for number in numbers {
            let signal = signal(*number)?;
            let mut inner = self.lock();
            inner.serve(self)?;
            let before = set(signal, SigHandler::Handler(pass_on))?;
            if matches!(before.handler(), SigHandler::SigDfl) {
                inner.before.insert(*number, before);
                inner.reactions.insert(*number, Reaction::End);
            } else {
                // SAFETY: it is the earlier action.
                let _ = unsafe { sigaction(signal, &before) };
            }
        }
        Ok(())
    }

    /// Sets the handler of a signal.
    pub fn set(self: &Arc<Signals>, number: i32, handler: SigHandler) -> Result<(), Failure> {
        let signal = signal(number)?;
        let directly = DIRECTLY.contains(&signal);
        let mut inner = self.lock();
        let before = match handler {
            SigHandler::Handler(handler) if !directly => {
                inner.serve(self)?;
                let before = set(signal, SigHandler::Handler(pass_on))?;
                inner.reactions.insert(number, Reaction::Call(handler));
                before
            }
            handler => {
                let before = set(signal, handler)?;
                inner.reactions.remove(&number);
                before
            }
        };
        inner.before.entry(number).or_insert(before);
        Ok(())
    }

    fn reaction(&self, number: i32) -> Option<Reaction> {
        self.lock().reactions.get(&number).copied()
    }

    /// Restores the earlier actions.
    pub fn restore(&self) {
        let mut inner = self.lock();
        inner.reactions.clear();
        for (number, before) in inner.before.drain() {
            if let Ok(signal) = Signal::try_from(number) {
                // SAFETY: it is the earlier action.
                let _ = unsafe { sigaction(signal, &before) };
            }
        }
        if let Some(mut thread) = inner.thread.take() {
            let _ = thread.write_all(&[0]);
            PIPE.store(-1, Ordering::Relaxed);
        }
    }
}

fn set(signal: Signal, handler: SigHandler) -> Result<SigAction, Failure> {
    let action = SigAction::new(handler, SaFlags::SA_RESTART, SigSet::empty());
    // SAFETY: this library's handler is async-signal-safe; others are the program's responsibility.
    unsafe { sigaction(signal, &action) }.map_err(|error| refused(signal, error))
}

impl Inner {
    /// Starts the thread, once.
    fn serve(&mut self, signals: &Arc<Signals>) -> Result<(), Failure> {
        if self.thread.is_some() {
            return Ok(());
        }
        let system = |error: std::io::Error| Failure::other(format!("handling signals: {error}"));
        let (ours, theirs) = UnixStream::pair().map_err(system)?;
        // A signal handler must not block.
        ours.set_nonblocking(true).map_err(system)?;
        let signals = Arc::downgrade(signals);
        let thread = std::thread::Builder::new().name("gridrpc-signals".into());
        thread.spawn(move || serve(theirs, &signals)).map_err(system)?;
        PIPE.store(ours.as_raw_fd(), Ordering::Relaxed);
        self.thread = Some(ours);
        Ok(())
    }
}

fn serve(mut pipe: UnixStream, signals: &Weak<Signals>) {
    let mut number = [0];
    while pipe.read_exact(&mut number).is_ok() && number[0] != 0 {
        let number = i32::from(number[0]);
        let Some(signals) = signals.upgrade() else { return };
        match signals.reaction(number) {
            // SAFETY: the program has supplied a function that takes the number.
            Some(Reaction::Call(handler)) => unsafe { handler(number) },
            Some(Reaction::End) => end(&signals, number),
            None => {}
        }
    }
}

/// Ends the program by the signal itself, so that its parent sees it. The workers exit when their connections
/// close.
fn end(signals: &Signals, number: i32) {
    signals.restore();
    if let Ok(signal) = Signal::try_from(number) {
        let _ = raise(signal);
        // The signal may be blocked in this thread.
        let _ = nix::sys::signal::kill(nix::unistd::getpid(), signal);
    }
}
