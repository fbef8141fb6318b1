//! Access to the values of a section: required or optional.

use std::path::Path;

use super::error::{ConfigError, Position};
use super::lines::Fault;
use super::server::Draft;
use super::values;

/// An attribute with its line.
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) words: Vec<String>,
    pub(super) line: usize,
}

/// A section: where it is, and its attributes.
pub(super) struct Content<'a> {
    pub(super) file: &'a Path,
    pub(super) name: &'a str,
    pub(super) line: usize,
    pub(super) entries: &'a [Entry],
}

impl Content<'_> {
    pub(super) fn fault(&self, line: usize, fault: Fault) -> ConfigError {
        fault_at(self.file, line, fault)
    }

    /// Parses the value of an attribute entry.
    pub(super) fn value<'e, T>(
        &self,
        entry: &'e Entry,
        parse: impl FnOnce(&'e [String]) -> Result<T, Fault>,
    ) -> Result<T, ConfigError> {
        parse(&entry.words).map_err(|Fault { message, hint }| {
            self.fault(entry.line, Fault::new(format!("`{}` {message}", entry.name), hint))
        })
    }

    /// Parses an optional attribute.
    pub(super) fn get<T>(
        &self,
        name: &str,
        parse: impl FnOnce(&[String]) -> Result<T, Fault>,
    ) -> Result<Option<T>, ConfigError> {
        let entry = self.entries.iter().find(|entry| entry.name == name);
        entry.map(|entry| self.value(entry, parse)).transpose()
    }

    pub(super) fn missing(&self, name: &str) -> ConfigError {
        self.fault(
            self.line,
            Fault::new(
                format!("<{}> has no `{name}`", self.name),
                format!("write a line `{name} ...` into it"),
            ),
        )
    }

    /// The single word of a required attribute.
    pub(super) fn required(&self, name: &str) -> Result<String, ConfigError> {
        self.get(name, |words| values::word(words).map(str::to_string))?
            .ok_or_else(|| self.missing(name))
    }

    /// The words of a required attribute that may be repeated.
    pub(super) fn words(&self, name: &str) -> Result<Vec<String>, ConfigError> {
        let entries = self.entries.iter().filter(|entry| entry.name == name);
        let words: Result<Vec<String>, _> = entries
            .map(|entry| self.value(entry, |words| values::word(words).map(str::to_string)))
            .collect();
        words.and_then(|words| if words.is_empty() { Err(self.missing(name)) } else { Ok(words) })
    }

    /// The section's server settings.
    pub(super) fn draft(&self) -> Result<Draft, ConfigError> {
        let mut draft = Draft::default();
        for entry in self.entries {
            self.value(entry, |words| draft.set(&entry.name, words))?;
        }
        Ok(draft)
    }
}

pub(super) fn malformed(at: Position, Fault { message, hint }: Fault) -> ConfigError {
    ConfigError::Malformed { at, message, hint }
}

pub(super) fn fault_at(file: &Path, line: usize, fault: Fault) -> ConfigError {
    malformed(Position { file: file.to_path_buf(), line }, fault)
}
