//! What the user is told on standard error while hosts start: a line that is rewritten in place, and taken
//! away before anybody else writes there.

use std::io::{IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};

/// The variable that says what is told.
const VARIABLE: &str = "GRIDRPC_PROGRESS";

/// How the user is told of hosts that are waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Progress {
    /// As `GRIDRPC_PROGRESS` says; else by a line if standard error is a terminal, and not at all if not.
    #[default]
    Auto,
    /// By a line that is rewritten in place.
    Line,
    /// By a line of its own for each change, at most every 30 s.
    Log,
    /// Not at all.
    Off,
}

impl Progress {
    /// What a word stands for; none: nothing.
    #[must_use]
    pub fn named(word: &str) -> Option<Progress> {
        Some(match word {
            "auto" => Progress::Auto,
            "line" => Progress::Line,
            "log" => Progress::Log,
            "off" => Progress::Off,
            _ => return None,
        })
    }

    /// What it is here, which is not `Auto`.
    pub fn resolved(self) -> Progress {
        if self != Progress::Auto {
            return self;
        }
        let word = std::env::var(VARIABLE).unwrap_or_default();
        match Progress::named(&word) {
            Some(progress) if progress != Progress::Auto => progress,
            _ if std::io::stderr().is_terminal() => Progress::Line,
            _ => Progress::Off,
        }
    }
}

/// Whether a line stands on the terminal that is to go before anything else is written.
static SHOWN: AtomicBool = AtomicBool::new(false);

/// Takes the line away, if there is one.
pub fn clear() {
    if SHOWN.load(Ordering::Relaxed) && SHOWN.swap(false, Ordering::Relaxed) {
        write("\r\x1b[K");
    }
}

/// Has this text in the line.
pub fn show(text: &str) {
    SHOWN.store(true, Ordering::Relaxed);
    write(&format!("\r{text}\x1b[K"));
}

/// Writes what stays.
pub fn write(text: &str) {
    // Nobody may read it.
    let _ = std::io::stderr().write_all(text.as_bytes());
}
