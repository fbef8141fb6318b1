//! Reads a TOML document: its text, and the errors of its syntax.

use std::fmt::{Debug, Display};
use std::fs;
use std::io::Read;
use std::path::Path;

use toml::de::DeTable;

use super::problems::{Fault, Problems, Report};

/// Longest document, bytes.
const LONGEST: usize = 1 << 20;

/// Reads the text of a document. `file` is its name in messages.
///
/// # Errors
/// When it is not a file of text that can be read, or too long.
pub fn read_text<F>(path: &Path, file: &str) -> Result<String, Problems<F>>
where
    F: From<Fault> + Debug + Display,
{
    let content = load(path)
        .map_err(|error| Problems::one(file, 0, Fault::Unreadable { reason: error.to_string() }))?;
    match String::from_utf8(content) {
        Ok(text) => Ok(text),
        // The end may be cut off within a character.
        Err(error) if error.as_bytes().len() > LONGEST => {
            Err(Problems::one(file, 0, Fault::TooLarge { most: LONGEST }))
        }
        Err(error) => {
            let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
            Err(Problems::one(file, line, Fault::NotUtf8))
        }
    }
}

/// Reads a small text file written by a person.
///
/// # Errors
/// When it cannot be read, exceeds the size limit for documents, or is not text.
pub fn small_text(path: &Path) -> std::io::Result<String> {
    let content = load(path)?;
    if content.len() > LONGEST {
        return Err(std::io::Error::other(format!("it is larger than {LONGEST} bytes")));
    }
    String::from_utf8(content).map_err(|_| std::io::Error::other("it is not text in UTF-8"))
}

fn load(path: &Path) -> std::io::Result<Vec<u8>> {
    // A pipe would block, and a device may never end.
    if !fs::metadata(path)?.is_file() {
        return Err(std::io::Error::other("it is not a regular file"));
    }
    let mut content = Vec::new();
    fs::File::open(path)?.take(LONGEST as u64 + 1).read_to_end(&mut content)?;
    Ok(content)
}

/// Parses a document, and makes of it what `read` makes of its root table. `file` is its name in messages.
///
/// # Errors
/// All problems that `read` reports, or only the syntax errors if it is not valid TOML.
pub fn parse<F, T>(
    text: &str,
    file: &str,
    read: impl FnOnce(&DeTable<'_>, &mut Report<'_, F>) -> T,
) -> Result<T, Problems<F>>
where
    F: From<Fault> + Debug + Display,
{
    if text.len() > LONGEST {
        return Err(Problems::one(file, 0, Fault::TooLarge { most: LONGEST }));
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut report = Report::new(file, text);
    let (document, mut errors) = DeTable::parse_recoverable(text);
    errors.sort_by_key(|error| error.span().map(|span| span.start));
    syntax(text, &errors, &mut report);
    // A key that could not be read would look like a missing one.
    let mut report = report.checked()?;
    let made = read(document.get_ref(), &mut report);
    report.finish(made)
}

/// Reports TOML syntax errors in the parser's words, except duplicates.
fn syntax<F>(text: &str, errors: &[toml::de::Error], report: &mut Report<'_, F>)
where
    F: From<Fault> + Debug + Display,
{
    // After a duplicate table: up to where the text is known to contain no other header.
    let mut second: Option<usize> = None;
    // Later errors in a line mostly follow from the first one.
    let mut line_told = None;
    for error in errors {
        let span = error.span().unwrap_or(0..0);
        let named = text.get(span.clone()).unwrap_or_default();
        let line = report.line_start(span.start);
        if error.message() != "duplicate key" || named.is_empty() {
            if line_told.replace(line) != Some(line) {
                report.add(span.start, Fault::NotToml { reason: error.message().into() });
            }
            continue;
        }
        let header = |line: &str| line.trim_start().starts_with('[');
        // The keys of a duplicate table repeat those of the first one.
        let follows = second.is_some_and(|from| {
            text.get(from..span.start).is_some_and(|new| !new.split('\n').skip(1).any(header))
        });
        if follows {
            second = Some(span.start);
            continue;
        }
        report.add(span.start, Fault::Twice { name: cut(named) });
        let is_header = text.get(line..).is_some_and(header);
        second = is_header.then_some(span.start);
    }
}

/// Shortens a name for messages.
pub(super) fn cut(name: &str) -> String {
    name.chars().take(255).collect()
}
