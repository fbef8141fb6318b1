//! Grants: what a user, a group or everyone may do, as a table says it.

use std::collections::BTreeSet;

use gridrpc_config::Entry;
use toml::de::DeTable;

use crate::limits::Limit;

use super::fault::{ServerFault, ServerReport};
use super::keys::{
    LONGEST, MOST, UNLIMITED, distinct, each_key, is_module_name, limit, number, or_unlimited, size,
};
use super::schema;

/// Highest weight and priority.
const MOST_WEIGHT: i64 = 1000;
/// Highest rate, calls per second.
const MOST_RATE: f64 = 1e9;

/// Modules that may be called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Modules {
    /// All.
    All,
    /// Those with these names.
    Named(BTreeSet<String>),
}

/// The values of one table: `[users.NAME]`, `[groups.NAME]` or `[everyone]`. None: the table does not say.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Grants {
    /// Modules that may be called.
    pub modules: Option<Modules>,
    /// Whether calls may send code: pickled Python functions.
    pub code: Option<bool>,
    /// Whether the user may see metrics and the state of all users.
    pub monitor: Option<bool>,
    /// Share of the workers, relative to other users.
    pub weight: Option<u32>,
    /// Priority of calls; higher goes first.
    pub priority: Option<i32>,
    /// Calls that run at a time.
    pub calls: Option<Limit>,
    /// Calls that wait.
    pub queued: Option<Limit>,
    /// Bytes of arguments held at a time.
    pub bytes: Option<Limit>,
    /// Calls per second; infinity: unlimited.
    pub rate: Option<f64>,
    /// Workers in use at a time.
    pub workers: Option<Limit>,
    /// CPU seconds in 24 hours.
    pub cpu_seconds: Option<Limit>,
    /// Bytes of data that is shared by name.
    pub shared_bytes: Option<Limit>,
}

impl Modules {
    /// Whether the module with this name is one of them.
    #[must_use]
    pub fn contains(&self, module: &str) -> bool {
        match self {
            Modules::All => true,
            Modules::Named(names) => names.contains(module),
        }
    }

    /// These and the others.
    #[must_use]
    pub fn union(self, other: Modules) -> Modules {
        match (self, other) {
            (Modules::Named(mut names), Modules::Named(others)) => {
                names.extend(others);
                Modules::Named(names)
            }
            _ => Modules::All,
        }
    }
}

impl Grants {
    /// Reads a table.
    pub(super) fn read(table: &DeTable<'_>, report: &mut ServerReport<'_>) -> Grants {
        let mut grants = Grants::default();
        each_key(table, schema::GRANTS, report, |entry, report| grants.set(entry, report));
        grants
    }

    fn set(&mut self, entry: &Entry<'_>, report: &mut ServerReport<'_>) -> Result<(), ServerFault> {
        let count = |least| {
            let read = move |entry: &Entry<'_>| Ok(number(entry, least, MOST)?.unsigned_abs());
            limit(entry, read).map(Some)
        };
        match entry.key {
            "modules" => self.modules = Some(modules(entry, report)),
            "code" => self.code = Some(entry.flag()?),
            "monitor" => self.monitor = Some(entry.flag()?),
            "weight" => self.weight = Some(number(entry, 1, MOST_WEIGHT)? as u32),
            "priority" => self.priority = Some(number(entry, -MOST_WEIGHT, MOST_WEIGHT)? as i32),
            "calls" => self.calls = count(1)?,
            "queued" => self.queued = count(0)?,
            "shared_bytes" => self.shared_bytes = Some(limit(entry, size)?),
            "bytes" => self.bytes = Some(limit(entry, size)?),
            "rate" => self.rate = Some(rate(entry)?),
            "workers" => self.workers = count(1)?,
            _ => {
                let read = |entry: &Entry<'_>| Ok(number(entry, 0, LONGEST as i64)?.unsigned_abs());
                self.cpu_seconds = Some(limit(entry, read)?);
            }
        }
        Ok(())
    }
}

fn modules(entry: &Entry<'_>, report: &mut ServerReport<'_>) -> Modules {
    const EXPECTED: &str = "a list of modules, such as [\"lapack\"], or \"*\" for all";
    let is_valid = |text: &str| text == "*" || is_module_name(text);
    let names = distinct(entry, EXPECTED, report, is_valid);
    if names.iter().any(|name| name == "*") {
        return Modules::All;
    }
    Modules::Named(names.into_iter().collect())
}

fn rate(entry: &Entry<'_>) -> Result<f64, ServerFault> {
    if entry.value.get_ref().as_str() == Some(UNLIMITED) {
        return Ok(f64::INFINITY);
    }
    let rate = entry.decimal().filter(|rate| *rate > 0.0 && *rate <= MOST_RATE);
    let expected = format!("calls per second, a number above 0 and up to {MOST_RATE}");
    Ok(rate.ok_or_else(|| or_unlimited(entry.wrong(expected)))?)
}
