//! Status line on standard error while hosts start: rewritten in place, and removed before anybody else writes there.

use std::io::{IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};

/// Environment variable that selects the report.
const VARIABLE: &str = "GRIDRPC_PROGRESS";

/// How to report hosts that the program waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Progress {
    /// As `GRIDRPC_PROGRESS` selects; otherwise a line if standard error is a terminal, and nothing if not.
    #[default]
    Auto,
    /// A line that is rewritten in place.
    Line,
    /// A new line for each change, at most every 30 s.
    Log,
    /// No report.
    Off,
}

impl Progress {
    /// Parses a word; `None` if it is unknown.
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

    /// The effective mode, which is not `Auto`.
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

/// Whether the terminal shows a line that must be removed before anything else is written.
static SHOWN: AtomicBool = AtomicBool::new(false);

/// Removes the line, if there is one.
pub fn clear() {
    if SHOWN.load(Ordering::Relaxed) && SHOWN.swap(false, Ordering::Relaxed) {
        write("\r\x1b[K");
    }
}

/// Shows this text in the line.
pub fn show(text: &str) {
    SHOWN.store(true, Ordering::Relaxed);
    write(&format!("\r{text}\x1b[K"));
}

/// Writes permanent text.
pub fn write(text: &str) {
    // It may have no reader.
    let _ = std::io::stderr().write_all(text.as_bytes());
}
