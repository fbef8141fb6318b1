//! The terminal while a grid is shown there: a screen of its own, which goes away again.

use std::io::{self, IsTerminal as _, Write as _};
use std::os::fd::AsRawFd;

use nix::sys::termios::{LocalFlags, SetArg, Termios, tcgetattr, tcsetattr};

use crate::top::error::{TopError, print};
use crate::top::rates::Rates;
use crate::top::text;

/// Of a terminal that does not say how large it is.
const USUAL: (usize, usize) = (80, 24);

/// While it is there, the terminal shows nothing else; dropping it brings back what was there.
#[derive(Debug)]
pub(super) struct Screen {
    /// How keys came before, if they are read here.
    keys: Option<Termios>,
}

impl Screen {
    pub(super) fn open() -> Screen {
        // The other screen, without a cursor.
        let _ = io::stdout().write_all(b"\x1b[?1049h\x1b[?25l");
        Screen { keys: keys_at_once() }
    }

    /// Whether keys are read that quit.
    pub(super) fn has_keys(&self) -> bool {
        self.keys.is_some()
    }

    /// Shows how a grid is getting on, in the place of what was shown before.
    pub(super) fn show(&mut self, rates: &Rates) -> Result<(), TopError> {
        let (columns, lines) = size().unwrap_or(USUAL);
        let table = text::table(rates, columns, lines.saturating_sub(2));
        let mut all = String::from("\x1b[H");
        let quit = if self.has_keys() { "q or Ctrl-C ends this" } else { "Ctrl-C ends this" };
        for line in table.lines().chain(["", quit]).take(lines) {
            if all.len() > 3 {
                all.push_str("\r\n");
            }
            // A terminal narrower than the table would put the rest on a line of its own.
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

/// Has keys come one by one and unseen. Returns how they came before; none: keys come from no terminal.
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

/// Whether standard output is a terminal on which text can be rewritten.
pub(super) fn is_there() -> bool {
    io::stdout().is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// How wide standard output is.
pub(super) fn columns() -> usize {
    size().unwrap_or(USUAL).0
}

/// Columns and lines of the terminal that standard output is.
fn size() -> Option<(usize, usize)> {
    // SAFETY: an all-zero value is valid, and a valid place to write to.
    let (status, size) = unsafe {
        let mut size: libc::winsize = std::mem::zeroed();
        (libc::ioctl(io::stdout().as_raw_fd(), libc::TIOCGWINSZ, &raw mut size), size)
    };
    (status == 0 && size.ws_col > 0 && size.ws_row > 0)
        .then(|| (size.ws_col.into(), size.ws_row.into()))
}
