//! Reading of tables and values that several tables have.

use std::path::{Path, PathBuf};

use gridrpc_config::{Entry, Fault, in_order, shown};
use gridrpc_sys::memory;
use toml::de::DeTable;

use crate::limits::Limit;

use super::fault::{ServerFault, ServerReport};

/// Longest number of seconds: a hundred years.
pub(super) const LONGEST: f64 = 3_155_760_000.0;
/// Most workers, calls and the like.
pub(super) const MOST: i64 = 1_000_000;

/// Calls `set` with each key of a table, and reports the keys that are unknown.
pub(super) fn each_key<'a>(
    table: &'a DeTable<'a>,
    known: &[&'static str],
    report: &mut ServerReport<'_>,
    mut set: impl FnMut(&Entry<'a>, &mut ServerReport<'_>) -> Result<(), ServerFault>,
) {
    for (name, value) in in_order(table) {
        let entry = Entry { key: name.get_ref(), value };
        if !known.contains(&entry.key) {
            let key = entry.key.chars().take(255).collect();
            let near = gridrpc_idl::nearest(entry.key, known.iter().copied());
            let fault = ServerFault::UnknownKey { key, near, known: known.to_vec() };
            report.add(name.span().start, fault);
        } else if let Err(fault) = set(&entry, report) {
            report.add(entry.at(), fault);
        }
    }
}

/// A whole number.
pub(super) fn number(entry: &Entry<'_>, least: i64, most: i64) -> Result<i64, Fault> {
    let number = entry.integer().filter(|number| (least..=most).contains(number));
    number.ok_or_else(|| entry.wrong(format!("a whole number from {least} to {most}")))
}

/// A size in bytes.
pub(super) fn size(entry: &Entry<'_>) -> Result<u64, Fault> {
    let size = entry.value.get_ref().as_str().and_then(memory::size).filter(|size| *size > 0);
    size.ok_or_else(|| entry.wrong("a size as in \"64 MiB\" or \"2 GB\""))
}

/// A limit: what `read` reads, or `"unlimited"`.
pub(super) fn limit(
    entry: &Entry<'_>,
    read: impl Fn(&Entry<'_>) -> Result<u64, Fault>,
) -> Result<Limit, Fault> {
    if entry.value.get_ref().as_str() == Some(UNLIMITED) {
        return Ok(Limit::Unlimited);
    }
    read(entry).map(Limit::At).map_err(or_unlimited)
}

/// The value of a limit that is off.
pub(super) const UNLIMITED: &str = "unlimited";

/// Adds "unlimited" to the values that a message proposes.
pub(super) fn or_unlimited(fault: Fault) -> Fault {
    match fault {
        Fault::Value { key, found, expected } => {
            Fault::Value { key, found, expected: format!("{expected}, or {UNLIMITED:?}") }
        }
        other => other,
    }
}

/// A list of different texts, or a single text. `valid` checks one text.
pub(super) fn distinct(
    entry: &Entry<'_>,
    expected: &str,
    report: &mut ServerReport<'_>,
    valid: impl Fn(&str) -> bool,
) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (at, text) in entry.texts(expected, report) {
        let key = entry.key.to_owned();
        if !valid(text) {
            let found = shown(text);
            report.add(at, Fault::Value { key, found, expected: expected.into() });
        } else if names.iter().any(|name| name == text) {
            report.add(at, ServerFault::Duplicate { key, name: text.into() });
        } else {
            names.push(text.into());
        }
    }
    names
}

/// A list of paths, or a single path.
pub(super) fn paths(
    entry: &Entry<'_>,
    folder: &Path,
    report: &mut ServerReport<'_>,
) -> Vec<PathBuf> {
    const EXPECTED: &str = "a list of paths, such as [\"/opt/site/lapack.so\"]";
    let texts = distinct(entry, EXPECTED, report, |text| {
        !text.is_empty() && text.len() < 4096 && !text.contains('\0')
    });
    texts.into_iter().map(|text| folder.join(text)).collect()
}

/// Whether a module can have this name: it is part of the names of functions, of paths and of addresses.
pub(super) fn is_module_name(name: &str) -> bool {
    let is_first = |first: char| first.is_ascii_alphabetic() || first == '_';
    (1..=255).contains(&name.len())
        && name.starts_with(is_first)
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
}
