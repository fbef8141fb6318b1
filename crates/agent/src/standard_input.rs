//! The agent's standard input: carries the ticket, and its end stops the agent.

use std::io::{self, BufRead as _, Read as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use nix::sys::prctl;
use nix::sys::signal::Signal;

/// What to do when standard input ends.
#[derive(Debug, Default)]
enum EndAction {
    /// Exit: nothing has to be shut down first.
    #[default]
    Exit,
    Notify(EndCallback),
    /// The end has been reported.
    Notified,
}

struct EndCallback(Box<dyn FnOnce() + Send>);

impl std::fmt::Debug for EndCallback {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ToTell")
    }
}

/// Monitor for the end of standard input.
#[derive(Clone, Debug, Default)]
pub(super) struct Input(Arc<Mutex<EndAction>>);

impl Input {
    fn lock(&self) -> MutexGuard<'_, EndAction> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `tell` at the end of standard input, instead of ending this process.
    pub(super) fn tell(&self, tell: impl FnOnce() + Send + 'static) {
        *self.lock() = EndAction::Notify(EndCallback(Box::new(tell)));
    }

    fn ended(&self) {
        let mut then = self.lock();
        match std::mem::replace(&mut *then, EndAction::Notified) {
            EndAction::Exit => std::process::exit(1),
            EndAction::Notify(EndCallback(tell)) => tell(),
            EndAction::Notified => {}
        }
    }
}

/// Makes the kernel resume a suspended agent when its parent ends; the agent then sees the end of standard
/// input.
pub(super) fn go_on_with_parent() {
    // If this fails, a suspended agent stays suspended, like any process.
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
    // Without a thread, only the client's connection shows when to end.
    let _ = thread::Builder::new().name("gridrpc-input".to_owned()).spawn(move || {
        let mut stdin = io::stdin().lock();
        let mut piece = [0; 256];
        while !matches!(stdin.read(&mut piece), Ok(0) | Err(_)) {}
        watched.ended();
    });
    input
}
