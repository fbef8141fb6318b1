//! What a batch system is asked for: the keys of a server that its jobs are made of.

use std::time::Duration;

use super::hosts::MOST_WORKERS;
use super::keys::MOST_HOSTS;
use super::problems::{Fault, Report};
use super::system::BatchSystem;
use super::values::Entry;
use super::{Host, LauncherKind};
use crate::memory;

/// How a batch system is asked for agents, and what for. What is not said, the site decides.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Batch {
    /// Which batch system that is.
    pub system: BatchSystem,
    /// In what form agents are asked for.
    pub request: RequestForm,
    /// The queue, which Slurm calls a partition.
    pub queue: Option<String>,
    /// Whose account, or what project, is charged.
    pub account: Option<String>,
    /// What gives a job of Grid Engine more than one slot.
    pub parallel_environment: Option<String>,
    /// Memory of each node, as the batch system writes it: `16G`.
    pub memory: Option<String>,
    /// How long a job may run.
    pub wall_time: Option<Duration>,
    /// Processors of each worker; 0: one.
    pub cores: u32,
    /// Whether nodes are not shared with other jobs.
    pub exclusive: bool,
    /// What nodes have to have, as the batch system writes it.
    pub constraint: Option<String>,
    /// Further options of the job, as they are.
    pub options: Vec<String>,
    /// Options that are left out though gridrpc would set them.
    pub skip: Vec<String>,
    /// A file with the job script, in the place of the usual one.
    pub template: Option<String>,
    /// Whether a job that the system has taken its nodes from waits for others, and goes on.
    pub requeue: bool,
}

/// In what form agents are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum RequestForm {
    /// As a step where there is an allocation already, else as an array.
    #[default]
    Auto,
    /// An array of jobs, one for each node: each starts when there is room for it.
    Array,
    /// One job of all nodes, which start together.
    Job,
    /// A step of the job that the client is part of.
    Step,
    /// One command that waits for nodes of its own, and ends with the client.
    Direct,
}

const REQUESTS: [(&str, RequestForm); 5] = [
    ("auto", RequestForm::Auto),
    ("array", RequestForm::Array),
    ("job", RequestForm::Job),
    ("step", RequestForm::Step),
    ("direct", RequestForm::Direct),
];

/// The word of a table for what it stands for.
pub(super) fn request_name(request: RequestForm) -> &'static str {
    REQUESTS.iter().find(|(_, one)| *one == request).map_or("auto", |(name, _)| name)
}

/// Which launchers have a key, and how messages name these.
#[derive(Clone, Copy, Debug)]
struct Owners {
    systems: &'static [BatchSystem],
    names: &'static str,
}

const ALL: Owners = Owners {
    systems: &[BatchSystem::Slurm, BatchSystem::GridEngine, BatchSystem::HtCondor],
    names: "\"slurm\", \"gridengine\" and \"htcondor\"",
};
const WITH_MPI: Owners = Owners {
    systems: &[
        BatchSystem::Slurm,
        BatchSystem::GridEngine,
        BatchSystem::HtCondor,
        BatchSystem::Mpi,
    ],
    names: "\"slurm\", \"gridengine\", \"htcondor\" and \"mpi\"",
};
const SLURM_AND_GRID_ENGINE: Owners = Owners {
    systems: &[BatchSystem::Slurm, BatchSystem::GridEngine],
    names: "\"slurm\" and \"gridengine\"",
};
const SLURM: Owners = Owners { systems: &[BatchSystem::Slurm], names: "\"slurm\"" };
const HTCONDOR: Owners = Owners { systems: &[BatchSystem::HtCondor], names: "\"htcondor\"" };
const GRID_ENGINE: Owners = Owners { systems: &[BatchSystem::GridEngine], names: "\"gridengine\"" };

/// The keys that batch systems alone have. What they call differently has the name that each of them gives it.
const KEYS: [(&str, Owners); 16] = [
    ("nodes", WITH_MPI),
    ("partition", SLURM),
    ("queue", GRID_ENGINE),
    ("account", SLURM),
    ("project", GRID_ENGINE),
    ("accounting_group", HTCONDOR),
    ("wall_time", ALL),
    ("cores", WITH_MPI),
    ("exclusive", SLURM_AND_GRID_ENGINE),
    ("constraint", ALL),
    ("parallel_environment", GRID_ENGINE),
    ("request", SLURM_AND_GRID_ENGINE),
    ("options", WITH_MPI),
    ("skip", ALL),
    ("template", ALL),
    ("requeue", ALL),
];

/// What a batch system calls its queues, and what is charged.
pub(super) fn own_names(system: BatchSystem) -> (&'static str, &'static str) {
    match system {
        BatchSystem::Slurm => ("partition", "account"),
        BatchSystem::GridEngine => ("queue", "project"),
        // Nothing is charged by `mpirun`.
        BatchSystem::HtCondor | BatchSystem::Mpi => ("queue", "accounting_group"),
    }
}

/// What a table says of them. Values that were wrong are missing, and have been told.
#[derive(Debug, Default)]
pub(super) struct Draft {
    /// Those that are there, with their places.
    given: Vec<(usize, &'static str, Owners)>,
    nodes: Option<u32>,
    /// Where they come and go: how many there always are.
    pub(super) least_nodes: Option<u32>,
    requeue: Option<bool>,
    request: Option<RequestForm>,
    queue: Option<String>,
    account: Option<String>,
    parallel_environment: Option<String>,
    /// What `memory` says, which all launchers have.
    pub(super) memory: Option<String>,
    wall_time: Option<Duration>,
    cores: Option<u32>,
    exclusive: Option<bool>,
    constraint: Option<String>,
    options: Option<Vec<String>>,
    skip: Option<Vec<String>>,
    template: Option<String>,
}

impl Draft {
    /// Takes the value of a key, if it is one of these.
    pub(super) fn set(&mut self, entry: &Entry<'_>) -> Result<(), Fault> {
        let Some((key, owners)) = KEYS.into_iter().find(|(key, _)| *key == entry.key) else {
            return Ok(());
        };
        self.given.push((entry.at(), key, owners));
        match key {
            "nodes" => {
                let (least, most) = entry.range(MOST_HOSTS as u32)?;
                (self.least_nodes, self.nodes) = (least, Some(most));
            }
            "requeue" => self.requeue = Some(entry.flag()?),
            "request" => self.request = Some(entry.choice(&REQUESTS)?),
            "partition" | "queue" => self.queue = Some(entry.line()?),
            "account" | "project" | "accounting_group" => self.account = Some(entry.line()?),
            "parallel_environment" => self.parallel_environment = Some(entry.line()?),
            "wall_time" => self.wall_time = Some(entry.wall_time()?),
            "cores" => self.cores = Some(entry.count(MOST_WORKERS)?),
            "exclusive" => self.exclusive = Some(entry.flag()?),
            "constraint" => self.constraint = Some(entry.line()?),
            "options" => self.options = Some(entry.options()?),
            "skip" => self.skip = Some(entry.lines()?),
            _ => self.template = Some(entry.text()?),
        }
        Ok(())
    }

    /// Whether it says how many nodes there are to be.
    pub(super) fn has_nodes(&self) -> bool {
        self.nodes.is_some()
    }

    /// Tells of keys that mean nothing to a launcher. `system`: the batch system that it is, if it is one.
    pub(super) fn check(
        &self,
        launcher: &'static str,
        system: Option<BatchSystem>,
        report: &mut Report<'_>,
    ) {
        for (at, key, owners) in &self.given {
            let (key, owners) = match *key {
                "request" if system.is_some() && self.request == Some(RequestForm::Direct) => {
                    ("request = \"direct\"", &SLURM)
                }
                key => (key, owners),
            };
            if !system.is_some_and(|system| owners.systems.contains(&system)) {
                report.add(*at, Fault::NotForLauncher { key, launcher, fits: owners.names });
            }
        }
    }

    /// The launcher, and the hosts of a server with this name; `defaults`: what stands in for what is
    /// missing. `left` is how many hosts there may still be.
    pub(super) fn launcher(
        self,
        system: BatchSystem,
        name: &str,
        at: usize,
        defaults: Option<&Draft>,
        left: &mut u64,
        report: &mut Report<'_>,
    ) -> (LauncherKind, Vec<Host>) {
        let empty = Draft::default();
        let other = defaults.unwrap_or(&empty);
        let or = |own: Option<String>, other: &Option<String>| own.or_else(|| other.clone());
        let batch = Batch {
            system,
            request: self.request.or(other.request).unwrap_or_default(),
            queue: or(self.queue, &other.queue),
            account: or(self.account, &other.account),
            parallel_environment: or(self.parallel_environment, &other.parallel_environment),
            memory: or(self.memory, &other.memory),
            wall_time: self.wall_time.or(other.wall_time),
            cores: self.cores.or(other.cores).unwrap_or(0),
            exclusive: self.exclusive.or(other.exclusive).unwrap_or(false),
            constraint: or(self.constraint, &other.constraint),
            options: self.options.or_else(|| other.options.clone()).unwrap_or_default(),
            skip: self.skip.or_else(|| other.skip.clone()).unwrap_or_default(),
            template: or(self.template, &other.template),
            requeue: self.requeue.or(other.requeue).unwrap_or(false),
        };
        let nodes = self.nodes.or(other.nodes);
        let is_within = batch.is_step() || system == BatchSystem::Mpi;
        let there = if is_within { system.allocation() } else { Vec::new() };
        let count = nodes.map_or(there.len().max(1), |nodes| nodes as usize);
        if count as u64 > *left {
            report.add(at, Fault::TooManyHosts { most: MOST_HOSTS });
            return (LauncherKind::Batch(Box::new(batch)), Vec::new());
        }
        *left -= count as u64;
        // Where nodes are not known before, each agent has a number.
        let known = there.into_iter().filter(|_| batch.is_step()).map(|node| node.name);
        let known: Vec<String> = known.collect();
        let numbered = (known.len() + 1..=count).map(|number| format!("{name}-{number}"));
        let hosts = known.into_iter().take(count).chain(numbered).map(Host::named).collect();
        (LauncherKind::Batch(Box::new(batch)), hosts)
    }
}

impl Batch {
    /// Whether agents are started within the job that this process is part of.
    #[must_use]
    pub fn is_step(&self) -> bool {
        match self.request {
            RequestForm::Auto => self.system.has_this(),
            RequestForm::Step => true,
            RequestForm::Array | RequestForm::Job | RequestForm::Direct => false,
        }
    }
}

/// A time as people write that of a job, `D-HH:MM:SS` or `HH:MM:SS`.
pub(super) fn clock_time(text: &str) -> Option<Duration> {
    let number = |text: &str| {
        let is_number = (1..=9).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
        text.parse::<u64>().ok().filter(|_| is_number)
    };
    let (days, rest) = match text.split_once('-') {
        Some((days, rest)) => (number(days)?, rest),
        None => (0, text),
    };
    let parts: Vec<u64> = rest.split(':').map(number).collect::<Option<_>>()?;
    let [hours, minutes, seconds] = parts[..] else { return None };
    let is_clock = minutes < 60 && seconds < 60;
    is_clock.then(|| Duration::from_secs(((days * 24 + hours) * 60 + minutes) * 60 + seconds))
}

/// What a size of memory is that a batch system understands, in bytes.
pub(super) fn memory_of(text: &str) -> Option<u64> {
    let unit = if text.ends_with(|last: char| last.is_ascii_digit()) { "M" } else { "" };
    memory::size(&format!("{text}{unit}"))
}

/// Whether a text is a size of memory.
pub(super) fn is_memory(text: &str) -> bool {
    let digits = text.trim_end_matches(['K', 'M', 'G', 'T']);
    text.len() <= digits.len() + 1
        && (1..=15).contains(&digits.len())
        && digits.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_slurm_writes_them() {
        let seconds = |text| clock_time(text).map(|time| time.as_secs());
        assert_eq!(seconds("01:30:05"), Some(5405));
        assert_eq!(seconds("2-00:00:01"), Some(172_801));
        assert_eq!(seconds("100:00:00"), Some(360_000));
        for wrong in ["", "30", "30:00", "1:60:00", "1:00:60", "-1:00:00", "a-1:00:00", "1:0x:00"] {
            assert_eq!(seconds(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn memory_has_one_unit_at_most() {
        assert!(["0", "500", "500M", "16G", "1T"].into_iter().all(is_memory));
        assert!(!["", "G", "16GB", "16 G", "1.5G", "-1", "16g"].into_iter().any(is_memory));
    }
}
