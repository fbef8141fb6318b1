//! Settings of calls: how a server runs the functions of one module.

use std::time::Duration;

use gridrpc_config::{Entry, is_name};
use toml::de::DeValue;

use super::calendar::{Period, calendar};
use super::fault::{ServerFault, ServerReport};
use super::keys::{LONGEST, MOST, distinct, number, size};

/// Who shares a worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Isolation {
    /// All users.
    #[default]
    Shared,
    /// The calls of one user.
    User,
    /// Nobody: each call has a new worker.
    Call,
}

/// Whose user id workers have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RunAs {
    /// That of the server.
    #[default]
    Server,
    /// That of the local user with the name of the calling user.
    Caller,
}

/// The order of queued calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// First come, first served.
    Fifo,
    /// Fair share by the weight of users.
    #[default]
    Fair,
    /// By the priority of users.
    Priority,
}

/// Processors of one call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cores {
    /// One, so that several calls run at a time.
    #[default]
    One,
    /// All of the host.
    All,
    /// This number.
    Count(u32),
}

/// Settings of the calls of one module. None: no limit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallSettings {
    /// Who shares a worker.
    pub isolation: Isolation,
    /// Whose user id its workers have.
    pub run_as: RunAs,
    /// The order of queued calls.
    pub policy: Policy,
    /// Most calls that run at a time.
    pub most_running: Option<u32>,
    /// Most calls in the queue.
    pub most_queued: Option<u32>,
    /// Processors of one call.
    pub cores: Cores,
    /// Memory of a worker, bytes.
    pub memory: Option<u64>,
    /// CPU time of a call.
    pub cpu_time: Option<Duration>,
    /// Wall time of a call.
    pub wall_time: Option<Duration>,
    /// Open files of a worker.
    pub open_files: Option<u32>,
    /// Processes and threads of a worker.
    pub processes: Option<u32>,
    /// Number of workers by time; the first period that includes the time counts.
    pub calendar: Vec<Period>,
    /// Users that may call it, beside those in `groups`.
    pub users: Option<Vec<String>>,
    /// Groups that may call it, beside the `users`.
    pub groups: Option<Vec<String>>,
}

const ISOLATIONS: [(&str, Isolation); 3] =
    [("shared", Isolation::Shared), ("user", Isolation::User), ("call", Isolation::Call)];
const RUN_AS: [(&str, RunAs); 2] = [("server", RunAs::Server), ("caller", RunAs::Caller)];
const POLICIES: [(&str, Policy); 3] =
    [("fifo", Policy::Fifo), ("fair", Policy::Fair), ("priority", Policy::Priority)];
const NAMES: &str = "a list of names without blanks, such as [\"ann\", \"bob\"]";

impl CallSettings {
    /// Whether no worker runs calls of two users.
    #[must_use]
    pub fn is_isolated(&self) -> bool {
        self.isolation != Isolation::Shared || self.run_as != RunAs::Server
    }

    /// Whether the module's own lists admit this user.
    #[must_use]
    pub fn admits(&self, user: &str, groups: &[String]) -> bool {
        if self.users.is_none() && self.groups.is_none() {
            return true;
        }
        let is_named = self.users.iter().flatten().any(|name| name == user);
        is_named || self.groups.iter().flatten().any(|name| groups.contains(name))
    }

    /// Sets the value of a key.
    pub(super) fn set(
        &mut self,
        entry: &Entry<'_>,
        report: &mut ServerReport<'_>,
    ) -> Result<(), ServerFault> {
        let count = || number(entry, 1, MOST).map(|number| Some(number as u32));
        match entry.key {
            "isolation" => self.isolation = entry.choice(&ISOLATIONS)?,
            "run_as" => self.run_as = entry.choice(&RUN_AS)?,
            "policy" => self.policy = entry.choice(&POLICIES)?,
            "most_running" => self.most_running = count()?,
            "most_queued" => self.most_queued = Some(number(entry, 0, MOST)? as u32),
            "cores" => self.cores = cores(entry)?,
            "memory" => self.memory = Some(size(entry)?),
            "cpu_seconds" => self.cpu_time = Some(entry.seconds(0.1, LONGEST)?),
            "wall_seconds" => self.wall_time = Some(entry.seconds(0.1, LONGEST)?),
            "open_files" => self.open_files = count()?,
            "processes" => self.processes = count()?,
            "calendar" => self.calendar = calendar(entry, report),
            "users" => self.users = Some(distinct(entry, NAMES, report, is_name)),
            _ => self.groups = Some(distinct(entry, NAMES, report, is_name)),
        }
        Ok(())
    }
}

fn cores(entry: &Entry<'_>) -> Result<Cores, ServerFault> {
    const MOST_CORES: i64 = 100_000;
    let cores = match entry.value.get_ref() {
        DeValue::String(text) if text == "one" => Some(Cores::One),
        DeValue::String(text) if text == "all" => Some(Cores::All),
        DeValue::Integer(_) => entry
            .integer()
            .filter(|count| (1..=MOST_CORES).contains(count))
            .map(|count| if count == 1 { Cores::One } else { Cores::Count(count as u32) }),
        _ => None,
    };
    let expected = format!("\"one\", \"all\", or a whole number from 1 to {MOST_CORES}");
    Ok(cores.ok_or_else(|| entry.wrong(expected))?)
}
