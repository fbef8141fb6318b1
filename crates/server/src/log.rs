//! The server's own log: lines on standard error, for people or for programs.

use std::fmt::{Display, Write as _};
use std::io::{self, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use serde_json::{Map, Value, json};

use crate::audit::rfc3339;
use crate::config::LogFormat;

/// Importance of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Something has changed as intended.
    Info,
    /// Something has failed; the server continues.
    Warning,
    /// Something has failed that an administrator has to correct.
    Error,
}

/// Values of an entry, by name.
pub type Fields<'f> = &'f [(&'static str, &'f dyn Display)];

impl Level {
    fn name(self) -> &'static str {
        match self {
            Level::Info => "info",
            Level::Warning => "warning",
            Level::Error => "error",
        }
    }
}

/// Set once, when the server starts: the log has no owner that every thread could reach.
static IS_JSON: AtomicBool = AtomicBool::new(false);

/// Sets the format of all entries of this process.
pub fn set_format(format: LogFormat) {
    IS_JSON.store(format == LogFormat::Json, Ordering::Relaxed);
}

/// Adds an entry: `gridrpc: message key=value`, or a JSON object.
pub fn log(level: Level, message: &str, fields: Fields<'_>) {
    let line = if IS_JSON.load(Ordering::Relaxed) {
        json_line(SystemTime::now(), level, message, fields)
    } else {
        text_line(level, message, fields)
    };
    // Without a reader there is nobody to report to.
    let _ = io::stderr().lock().write_all(line.as_bytes());
}

/// Adds an entry about something that has changed as intended.
pub fn info(message: &str, fields: Fields<'_>) {
    log(Level::Info, message, fields);
}

/// Adds an entry about a failure after which the server continues.
pub fn warning(message: &str, fields: Fields<'_>) {
    log(Level::Warning, message, fields);
}

fn text_line(level: Level, message: &str, fields: Fields<'_>) -> String {
    let mut line = String::from("gridrpc: ");
    if level != Level::Info {
        let _ = write!(line, "{}: ", level.name());
    }
    push_printable(&mut line, message);
    for (name, value) in fields {
        let value = value.to_string();
        let _ = write!(line, " {name}=");
        if value.is_empty() || value.contains(|c: char| c.is_whitespace() || "\"=".contains(c)) {
            let _ = write!(line, "{value:?}");
        } else {
            push_printable(&mut line, &value);
        }
    }
    line.push('\n');
    line
}

/// Texts come from clients too: a line break would forge an entry.
fn push_printable(line: &mut String, text: &str) {
    for c in text.chars() {
        if c.is_control() {
            line.extend(c.escape_default());
        } else {
            line.push(c);
        }
    }
}

fn json_line(time: SystemTime, level: Level, message: &str, fields: Fields<'_>) -> String {
    let mut entry = Map::new();
    entry.insert("time".into(), json!(rfc3339(time)));
    entry.insert("level".into(), json!(level.name()));
    entry.insert("message".into(), json!(message));
    for (name, value) in fields {
        entry.insert((*name).into(), json!(value.to_string()));
    }
    format!("{}\n", Value::Object(entry))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_one_line() {
        let fields: Fields<'_> = &[("module", &"fft"), ("reason", &"two words\nand a line")];
        let line = text_line(Level::Warning, "is\u{1b}[31m not published", fields);
        let expected = "gridrpc: warning: is\\u{1b}[31m not published module=fft \
                        reason=\"two words\\nand a line\"\n";
        assert_eq!(line, expected);
        let line = json_line(SystemTime::UNIX_EPOCH, Level::Info, "a\nb", fields);
        assert_eq!(line.lines().count(), 1);
        let entry: Value = serde_json::from_str(&line).unwrap();
        let expected = json!({
            "time": "1970-01-01T00:00:00.000000Z", "level": "info", "message": "a\nb", "module": "fft",
            "reason": "two words\nand a line",
        });
        assert_eq!(entry, expected);
    }
}
