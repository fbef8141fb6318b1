//! Terminal display on the alternate screen.

use std::io::{self, IsTerminal as _, Write as _};
use std::os::fd::AsRawFd;

use nix::sys::termios::{LocalFlags, SetArg, Termios, tcgetattr, tcsetattr};

use crate::top::error::{TopError, print};
use crate::top::view::View;

/// Size of a terminal that does not report one.
const USUAL: (usize, usize) = (80, 24);

/// The alternate screen; dropping it restores the terminal.
#[derive(Debug)]
pub(super) struct Screen {
    /// Terminal settings to restore, if keys are read here.
    keys: Option<Termios>,
}

impl Screen {
    pub(super) fn open() -> Screen {
        // The alternate screen, without a cursor.
        let _ = io::stdout().write_all(b"\x1b[?1049h\x1b[?25l");
        Screen { keys: keys_at_once() }
    }

    /// Whether keys that quit are read.
    pub(super) fn has_keys(&self) -> bool {
        self.keys.is_some()
    }

    /// Shows statistics in place of the previous ones.
    pub(super) fn show(&mut self, view: &dyn View) -> Result<(), TopError> {
        let (columns, lines) = size().unwrap_or(USUAL);
        let table = view.table(columns, lines.saturating_sub(2));
        let mut all = String::from("\x1b[H");
        let quit = if self.has_keys() { "q or Ctrl-C ends this" } else { "Ctrl-C ends this" };
        for line in table.lines().chain(["", quit]).take(lines) {
            if all.len() > 3 {
                all.push_str("\r\n");
            }
            // A terminal narrower than the table would wrap lines.
            all.extend(line.chars().take(columns));
            all.push_str("\x1b[K");
        }
        all.push_str("\x1b[J");
        print(&all)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        if let Some(before) = &self.keys {
            let _ = tcsetattr(io::stdin(), SetArg::TCSADRAIN, before);
        }
        let _ = io::stdout().write_all(b"\x1b[?25h\x1b[?1049l").and_then(|()| io::stdout().flush());
    }
}

/// Reads keys unbuffered and without echo. Returns the previous settings; none if standard input is not a
/// terminal.
fn keys_at_once() -> Option<Termios> {
    if !io::stdin().is_terminal() {
        return None;
    }
    let before = tcgetattr(io::stdin()).ok()?;
    let mut now = before.clone();
    now.local_flags.remove(LocalFlags::ICANON | LocalFlags::ECHO);
    tcsetattr(io::stdin(), SetArg::TCSADRAIN, &now).ok()?;
    Some(before)
}

/// Whether standard output is a terminal that can rewrite text.
pub(super) fn is_there() -> bool {
    io::stdout().is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// Width of standard output.
pub(super) fn columns() -> usize {
    size().unwrap_or(USUAL).0
}

/// Columns and lines of the terminal on standard output.
fn size() -> Option<(usize, usize)> {
    // SAFETY: an all-zero value is valid and may be written to.
    let (status, size) = unsafe {
        let mut size: libc::winsize = std::mem::zeroed();
        (libc::ioctl(io::stdout().as_raw_fd(), libc::TIOCGWINSZ, &raw mut size), size)
    };
    (status == 0 && size.ws_col > 0 && size.ws_row > 0)
        .then(|| (size.ws_col.into(), size.ws_row.into()))
}
