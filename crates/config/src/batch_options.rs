//! What a batch system is asked for: the keys of a group that its jobs are made of.

use std::time::Duration;

use super::batch_systems::BatchSystem;
use super::group::{Batch, LauncherKind, RequestForm};
use super::host_list::{Host, MOST_HOSTS, MOST_WORKERS};
use super::problems::{Fault, Report};
use super::values::Entry;

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

    /// The launcher, and the hosts of a group with this name; `defaults`: what stands in for what is
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
