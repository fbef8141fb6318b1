//! Log of the library, to standard error or a file.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::config::ClientConfig;

/// Level of a line. Lines up to the configured level are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Why a function failed.
    Error,
    /// Something has no effect, or may go wrong.
    Warning,
    /// Beginning and end.
    Information,
    /// Every handle.
    Debug,
    /// Every session.
    Everything,
}

impl Level {
    /// Lowest `loglevel` that writes lines of this level.
    fn least(self) -> u8 {
        match self {
            Level::Error | Level::Warning => 2,
            Level::Information => 3,
            Level::Debug => 4,
            Level::Everything => 5,
        }
    }
}

/// The log.
#[derive(Debug)]
pub struct Log {
    level: u8,
    file: Option<Mutex<File>>,
}

impl Log {
    /// The log before a configuration has been read.
    pub fn without_configuration() -> Log {
        Log { level: ClientConfig::default().log_level, file: None }
    }

    /// Opens the configured log. If the file cannot be opened, the log goes to standard error.
    pub fn open(config: &ClientConfig, host: &str) -> Log {
        let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let path = config.log_path(&time.to_string(), host, std::process::id());
        let mut log = Log { level: config.log_level, file: None };
        let Some(path) = path else { return log };
        // The folder may be missing, and other programs may be creating it.
        let _ = path.parent().map(std::fs::create_dir_all);
        match OpenOptions::new().create(true).append(true).open(&path) {
            Ok(file) => log.file = Some(Mutex::new(file)),
            Err(error) => {
                log.write(Level::Warning, || {
                    format!("cannot open the log file `{}`: {error}", path.display())
                });
            }
        }
        log
    }

    /// Writes a line if its level is enabled.
    pub fn write(&self, level: Level, text: impl FnOnce() -> String) {
        if level.least() > self.level {
            return;
        }
        let kind = match level {
            Level::Error => "error: ",
            Level::Warning => "warning: ",
            Level::Information | Level::Debug | Level::Everything => "",
        };
        let line = format!("gridrpc: {kind}{}\n", text());
        // A failure to write is ignored.
        let _ = match &self.file {
            Some(file) => {
                file.lock().unwrap_or_else(PoisonError::into_inner).write_all(line.as_bytes())
            }
            None => std::io::stderr().write_all(line.as_bytes()),
        };
    }
}
