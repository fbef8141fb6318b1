//! Python modules: functions and classes of the server's own packages, offered under one name.

use std::path::{Path, PathBuf};

use gridrpc_config::Entry;
use toml::de::DeTable;

use super::call_settings::CallSettings;
use super::fault::{ServerFault, ServerReport};
use super::keys::{distinct, each_key, paths};
use super::schema;

/// A function or class of a Python package: `package.module:name`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PythonName {
    /// The Python module.
    pub module: String,
    /// The name in it, under which it is offered.
    pub name: String,
}

/// Functions and classes that the server offers as `NAME/function`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PythonModule {
    /// The functions.
    pub functions: Vec<PythonName>,
    /// The classes.
    pub classes: Vec<PythonName>,
    /// Folders in front of `sys.path`.
    pub path: Vec<PathBuf>,
    /// How calls run.
    pub calls: CallSettings,
}

impl PythonName {
    fn read(text: &str) -> Option<PythonName> {
        let (module, name) = text.split_once(':')?;
        let is_valid = module.split('.').all(is_identifier) && is_identifier(name);
        is_valid.then(|| PythonName { module: module.into(), name: name.into() })
    }
}

impl PythonModule {
    /// What makes an object of a class, among its methods.
    pub const MAKE: &str = "__init__";

    /// Reads a table `[python.NAME]`. `folder`: that of the file.
    pub(super) fn read(
        table: &DeTable<'_>,
        at: usize,
        folder: &Path,
        report: &mut ServerReport<'_>,
    ) -> PythonModule {
        let mut module = PythonModule::default();
        let known = [schema::PYTHON, schema::CALLS].concat();
        each_key(table, &known, report, |entry, report| {
            match entry.key {
                "functions" | "classes" => {
                    let names = module.names(entry, report);
                    match entry.key {
                        "functions" => module.functions = names,
                        _ => module.classes = names,
                    }
                }
                "path" => module.path = paths(entry, folder, report),
                _ => module.calls.set(entry, report)?,
            }
            Ok(())
        });
        if !table.contains_key("functions") && !table.contains_key("classes") {
            report.add(at, ServerFault::OffersNothing);
        }
        module
    }

    fn names(&self, entry: &Entry<'_>, report: &mut ServerReport<'_>) -> Vec<PythonName> {
        const EXPECTED: &str = "a list such as [\"package.module:name\"]";
        let is_read = |text: &str| PythonName::read(text).is_some();
        let texts = distinct(entry, EXPECTED, report, is_read);
        let mut names: Vec<PythonName> = Vec::new();
        for name in texts.iter().filter_map(|text| PythonName::read(text)) {
            // Both kinds are offered under the same name.
            let mut others = names.iter().chain(&self.functions).chain(&self.classes);
            if others.any(|other| other.name == name.name) {
                let fault = ServerFault::Duplicate { key: entry.key.into(), name: name.name };
                report.add(entry.at(), fault);
            } else {
                names.push(name);
            }
        }
        names
    }
}

fn is_identifier(text: &str) -> bool {
    text.len() <= 255
        && text.starts_with(|first: char| first.is_alphabetic() || first == '_')
        && text.chars().all(|c| c.is_alphanumeric() || c == '_')
}
