//! The agent's standard input: the ticket comes by it, and its end tells the agent to end.

use std::io::{self, BufRead as _, Read as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use nix::sys::prctl;
use nix::sys::signal::Signal;

/// What is to be done when standard input ends.
#[derive(Debug, Default)]
enum Then {
    /// There is nothing that would have to be ended first.
    #[default]
    Exit,
    Tell(ToTell),
    /// It has ended, and has been told of.
    Told,
}

struct ToTell(Box<dyn FnOnce() + Send>);

impl std::fmt::Debug for ToTell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ToTell")
    }
}

/// Standard input, whose end is waited for.
#[derive(Clone, Debug, Default)]
pub(super) struct Input(Arc<Mutex<Then>>);

impl Input {
    fn lock(&self) -> MutexGuard<'_, Then> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on the end of standard input does not end this process, but is told.
    pub(super) fn tell(&self, tell: impl FnOnce() + Send + 'static) {
        *self.lock() = Then::Tell(ToTell(Box::new(tell)));
    }

    fn ended(&self) {
        let mut then = self.lock();
        match std::mem::replace(&mut *then, Then::Told) {
            Then::Exit => std::process::exit(1),
            Then::Tell(ToTell(tell)) => tell(),
            Then::Told => {}
        }
    }
}

/// An agent that somebody has stopped cannot see that whoever started it is gone: the kernel has it go on
/// then, and it finds its standard input at its end.
pub(super) fn go_on_with_parent() {
    // Without it a stopped agent stays stopped, as any process does.
    let _ = prctl::set_pdeathsig(Signal::SIGCONT);
}

/// The first line.
pub(super) fn first_line() -> io::Result<String> {
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    if line.trim().is_empty() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(line)
}

/// Waits for the end of standard input in a thread.
pub(super) fn watch() -> Input {
    let input = Input::default();
    let watched = input.clone();
    // Without a thread the client's connection alone tells when to end.
    let _ = thread::Builder::new().name("gridrpc-input".to_owned()).spawn(move || {
        let mut stdin = io::stdin().lock();
        let mut piece = [0; 256];
        while !matches!(stdin.read(&mut piece), Ok(0) | Err(_)) {}
        watched.ended();
    });
    input
}
