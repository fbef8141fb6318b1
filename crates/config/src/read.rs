//! Reads groups from a TOML file and reports all problems at once.

use std::path::Path;

use toml::de::{DeTable, DeValue};

use super::document::{cut, parse, read_text};
use super::group::HostGroup;
use super::host_list::MOST_HOSTS;
use super::keys::Draft;
use super::problems::{Fault, Part, Problems, Report};
use super::values::{found, in_order, shown};

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
    read(&read_text(path, file)?, file)
}

/// Reads the groups of a description, in order. `file` is its name in messages. Ignores the table `[grid]`.
///
/// # Errors
///
/// All problems of the text, or only the syntax error if it is not valid TOML.
pub fn read(text: &str, file: &str) -> Result<Vec<HostGroup>, Problems> {
    parse(text, file, tables)
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

/// Whether a text can be a name in a file: names prefix lines of output and appear in messages.
#[must_use]
pub fn is_name(name: &str) -> bool {
    (1..=255).contains(&name.len()) && !name.contains(|c: char| c.is_whitespace() || c.is_control())
}
