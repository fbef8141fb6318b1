//! Reads groups from a TOML file and reports all problems at once.

use std::fs;
use std::io::Read;
use std::path::Path;

use toml::de::{DeTable, DeValue};

use super::group::HostGroup;
use super::host_list::MOST_HOSTS;
use super::keys::Draft;
use super::problems::{Fault, Part, Problems, Report};
use super::values::{found, in_order, shown};

/// Longest description, bytes.
const LONGEST: usize = 1 << 20;
/// Limit on groups.
const MOST_SERVERS: usize = 1000;
/// The tables of a file.
const TABLES: [&str; 3] = ["grid", "defaults", "server"];

/// Reads a file.
///
/// # Errors
///
/// All problems of the file.
pub fn read_file(path: &Path) -> Result<Vec<HostGroup>, Problems> {
    let file = &path.display().to_string();
    let content = load(path)
        .map_err(|error| Problems::one(file, 0, Fault::Unreadable { reason: error.to_string() }))?;
    match std::str::from_utf8(&content) {
        Ok(text) => read(text, file),
        // The end may be cut off within a character.
        Err(_) if content.len() > LONGEST => {
            Err(Problems::one(file, 0, Fault::TooLarge { most: LONGEST }))
        }
        Err(error) => {
            let before = &content[..error.valid_up_to()];
            let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
            Err(Problems::one(file, line, Fault::NotUtf8))
        }
    }
}

/// Reads a small text file written by a person.
///
/// # Errors
/// When it cannot be read, exceeds the size limit for files of groups, or is not text.
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

/// Reads the groups of a description, in order. `file` is its name in messages. Ignores the table `[grid]`.
///
/// # Errors
///
/// All problems of the text, or only the syntax error if it is not valid TOML.
pub fn read(text: &str, file: &str) -> Result<Vec<HostGroup>, Problems> {
    if text.len() > LONGEST {
        return Err(Problems::one(file, 0, Fault::TooLarge { most: LONGEST }));
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut report = Report::new(file, text);
    let (document, mut errors) = DeTable::parse_recoverable(text);
    errors.sort_by_key(|error| error.span().map(|span| span.start));
    syntax(text, &errors, &mut report);
    // A key that could not be read would look like a missing one.
    if !report.is_empty() {
        return report.finish(Vec::new());
    }
    let groups = tables(document.get_ref(), &mut report);
    report.finish(groups)
}

/// Reports TOML syntax errors in the parser's words, except duplicates.
fn syntax(text: &str, errors: &[toml::de::Error], report: &mut Report<'_>) {
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

fn tables(document: &DeTable<'_>, report: &mut Report<'_>) -> Vec<HostGroup> {
    let mut defaults = Draft::default();
    let mut groups = None;
    for (name, value) in in_order(document) {
        let at = name.span().start;
        let table = value.get_ref().as_table();
        let found = || found(value.get_ref());
        match (name.get_ref().as_ref(), table) {
            ("grid", Some(_)) => {}
            ("defaults", Some(table)) => {
                report.part = Part::Defaults;
                defaults = Draft::read(table, &mut 0, report);
                defaults.check(None, report);
                report.part = Part::Whole;
            }
            ("server", Some(table)) => groups = Some(table),
            (name, None) if TABLES.contains(&name) => {
                let example = match name {
                    "grid" => "[grid]",
                    "defaults" => "[defaults]",
                    _ => "[server.NAME]",
                };
                report.add(at, Fault::NotATable { name: name.into(), found: found(), example });
            }
            (name, _) => {
                let near = gridrpc_idl::nearest(name, TABLES);
                report.add(at, Fault::UnknownTable { name: cut(name), near });
            }
        }
    }
    let Some(groups) = groups else { return Vec::new() };
    if groups.len() > MOST_SERVERS {
        let at = in_order(groups)[MOST_SERVERS].0.span().start;
        report.add(at, Fault::TooManyServers { most: MOST_SERVERS });
        return Vec::new();
    }
    let mut left = MOST_HOSTS;
    let mut made = Vec::new();
    for (name, value) in in_order(groups) {
        let at = name.span().start;
        let name: &str = name.get_ref();
        let DeValue::Table(table) = value.get_ref() else {
            let found = found(value.get_ref());
            let (name, example) = (format!("server.{}", cut(name)), "[server.NAME]");
            report.add(at, Fault::NotATable { name, found, example });
            continue;
        };
        report.part = Part::HostGroup(cut(name));
        if !is_name(name) {
            report.add(at, Fault::Name { found: shown(name) });
        }
        let draft = Draft::read(table, &mut left, report);
        made.push(draft.group(name, at, &defaults, &mut left, report));
        report.part = Part::Whole;
    }
    made
}

/// Shortens a name for messages.
fn cut(name: &str) -> String {
    name.chars().take(255).collect()
}

/// Names prefix lines of output and appear in messages.
pub(super) fn is_name(name: &str) -> bool {
    (1..=255).contains(&name.len()) && !name.contains(|c: char| c.is_whitespace() || c.is_control())
}
