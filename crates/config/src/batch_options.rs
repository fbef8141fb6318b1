//! Batch options: the keys of a host group that define its jobs.

use std::time::Duration;

use super::batch_systems::BatchSystem::{
    self, Flux, GridEngine, HtCondor, Lsf, Mpi, Pbs, Slurm, Torque,
};
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

/// The value's name in a table.
pub(super) fn request_name(request: RequestForm) -> &'static str {
    REQUESTS.iter().find(|(_, one)| *one == request).map_or("auto", |(name, _)| name)
}

/// The systems that support a key.
type Owners = &'static [BatchSystem];

const ANY: Owners = &BatchSystem::ALL;
const WITH_QUEUE: Owners = &[Slurm, GridEngine, HtCondor, Pbs, Torque, Lsf, Flux];
const REQUEUING: Owners = &[Slurm, GridEngine, HtCondor, Pbs, Torque, Lsf];
/// Systems that start the agent of a job of several nodes on its first node.
const SPANNING: Owners = &[Slurm, Pbs, Torque, Lsf];
const SLURM_AND_GRID_ENGINE: Owners = &[Slurm, GridEngine];
const SLURM: Owners = &[Slurm];

/// Keys that only batch systems have. A key that they name differently goes by each system's own name.
const KEYS: [(&str, Owners); 18] = [
    ("nodes", ANY),
    ("nodes_per_host", SPANNING),
    ("partition", SLURM),
    ("queue", &[GridEngine, Pbs, Torque, Lsf, Flux]),
    ("account", &[Slurm, Torque]),
    ("project", &[GridEngine, Pbs, Lsf]),
    ("accounting_group", &[HtCondor]),
    ("bank", &[Flux]),
    ("wall_time", WITH_QUEUE),
    ("cores", ANY),
    ("exclusive", &[Slurm, GridEngine, Pbs, Torque, Lsf, Flux]),
    ("constraint", WITH_QUEUE),
    ("parallel_environment", &[GridEngine]),
    ("request", SLURM_AND_GRID_ENGINE),
    ("options", ANY),
    ("skip", WITH_QUEUE),
    ("template", WITH_QUEUE),
    ("requeue", REQUEUING),
];

/// A batch system's terms for queue and account.
pub(super) fn own_names(system: BatchSystem) -> (&'static str, &'static str) {
    match system {
        Slurm => ("partition", "account"),
        GridEngine | Pbs | Lsf => ("queue", "project"),
        Torque => ("queue", "account"),
        Flux => ("queue", "bank"),
        // `mpirun` charges nothing.
        HtCondor | Mpi => ("queue", "accounting_group"),
    }
}

/// The names of launchers, as in `"local", "slurm" and "htcondor"`.
pub(super) fn listed(names: impl Iterator<Item = &'static str>) -> String {
    let mut names: Vec<String> = names.map(|name| format!("{name:?}")).collect();
    match (names.pop(), names.is_empty()) {
        (Some(last), false) => format!("{} and {last}", names.join(", ")),
        (last, _) => last.unwrap_or_default(),
    }
}

/// Batch options of a table. Invalid values are absent and have been reported.
#[derive(Debug, Default)]
pub(super) struct Draft {
    /// The keys that are set, with their positions.
    given: Vec<(usize, &'static str, Owners)>,
    nodes: Option<u32>,
    /// The minimum number of nodes, if they come and go with demand.
    pub(super) least_nodes: Option<u32>,
    nodes_per_host: Option<u32>,
    requeue: Option<bool>,
    request: Option<RequestForm>,
    queue: Option<String>,
    account: Option<String>,
    parallel_environment: Option<String>,
    /// The value of `memory`, a key of all launchers.
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
    /// Sets the value of a key if it is a batch option.
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
            "nodes_per_host" => {
                self.nodes_per_host = Some(entry.count(MOST_HOSTS as u32)?);
            }
            "requeue" => self.requeue = Some(entry.flag()?),
            "request" => self.request = Some(entry.choice(&REQUESTS)?),
            "partition" | "queue" => self.queue = Some(entry.line()?),
            "account" | "project" | "accounting_group" | "bank" => {
                self.account = Some(entry.line()?)
            }
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

    /// Whether the number of nodes is set.
    pub(super) fn has_nodes(&self) -> bool {
        self.nodes.is_some()
    }

    /// Reports keys that the launcher does not support. `system`: its batch system, if it has one.
    pub(super) fn check(
        &self,
        launcher: &'static str,
        system: Option<BatchSystem>,
        report: &mut Report<'_>,
    ) {
        for (at, key, owners) in &self.given {
            let (key, owners) = match *key {
                "request" if system.is_some() && self.request == Some(RequestForm::Direct) => {
                    ("request = \"direct\"", SLURM)
                }
                key => (key, *owners),
            };
            if !system.is_some_and(|system| owners.contains(&system)) {
                let fits = listed(owners.iter().map(|system| system.name()));
                report.add(*at, Fault::NotForLauncher { key, launcher, fits });
            }
        }
    }

    /// The launcher and the hosts of a group with this name. `defaults` supplies missing values; `left` is
    /// how many hosts may still be added.
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
            prefix: Vec::new(),
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
            nodes_per_host: self.nodes_per_host.or(other.nodes_per_host).unwrap_or(0),
        };
        let nodes = self.nodes.or(other.nodes);
        let is_within = batch.is_step() || system == Mpi;
        let there = if is_within { system.allocation() } else { Vec::new() };
        let count = nodes.map_or(there.len().max(1), |nodes| nodes as usize);
        if count as u64 > *left {
            report.add(at, Fault::TooManyHosts { most: MOST_HOSTS });
            return (LauncherKind::Batch(Box::new(batch)), Vec::new());
        }
        *left -= count as u64;
        // Where the nodes are not known in advance, agents are numbered.
        let known = there.into_iter().filter(|_| batch.is_step()).map(|node| node.name);
        let known: Vec<String> = known.collect();
        let numbered = (known.len() + 1..=count).map(|number| format!("{name}-{number}"));
        let hosts = known.into_iter().take(count).chain(numbered).map(Host::named).collect();
        (LauncherKind::Batch(Box::new(batch)), hosts)
    }
}
