//! Supported batch systems, and the current job of this process.

use super::host_list::{Pattern, patterns};

/// A batch system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum BatchSystem {
    /// Slurm.
    #[default]
    Slurm,
    /// Grid Engine in any variant: SGE, Son of Grid Engine, Univa, Altair, Open Grid Scheduler.
    GridEngine,
    /// HTCondor.
    HtCondor,
    /// OpenPBS and PBS Professional.
    Pbs,
    /// Torque.
    Torque,
    /// IBM Spectrum LSF.
    Lsf,
    /// Flux.
    Flux,
    /// Open MPI's `mpirun` in an allocation from any batch system.
    Mpi,
}

/// A node of the current job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its name, as the batch system writes it.
    pub name: String,
    /// How many of its processors the job has; none: the node reports the number.
    pub processors: Option<usize>,
}

impl BatchSystem {
    /// All of them.
    pub(super) const ALL: [BatchSystem; 8] = [
        BatchSystem::Slurm,
        BatchSystem::GridEngine,
        BatchSystem::HtCondor,
        BatchSystem::Pbs,
        BatchSystem::Torque,
        BatchSystem::Lsf,
        BatchSystem::Flux,
        BatchSystem::Mpi,
    ];

    /// The system with this name.
    pub(super) fn named(name: &str) -> Option<BatchSystem> {
        BatchSystem::ALL.into_iter().find(|system| system.name() == name)
    }

    /// Whether it takes jobs from a queue; `mpirun` has none.
    pub(super) fn has_queue(self) -> bool {
        self != BatchSystem::Mpi
    }

    /// Its name in `launcher` and in URLs.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            BatchSystem::Slurm => "slurm",
            BatchSystem::GridEngine => "gridengine",
            BatchSystem::HtCondor => "htcondor",
            BatchSystem::Pbs => "pbs",
            BatchSystem::Torque => "torque",
            BatchSystem::Lsf => "lsf",
            BatchSystem::Flux => "flux",
            BatchSystem::Mpi => "mpi",
        }
    }

    /// Whether this process runs in a job of this system.
    pub(super) fn has_this(self) -> bool {
        let is_set = |name| std::env::var_os(name).is_some();
        match self {
            BatchSystem::Slurm => is_set("SLURM_JOB_ID"),
            // Other systems set JOB_ID as well.
            BatchSystem::GridEngine => is_set("JOB_ID") && is_set("SGE_TASK_ID"),
            // An HTCondor job has a single machine; in jobs of the others, `mpi` starts agents.
            BatchSystem::HtCondor
            | BatchSystem::Pbs
            | BatchSystem::Torque
            | BatchSystem::Lsf
            | BatchSystem::Flux => false,
            // `mpirun` knows its nodes itself.
            BatchSystem::Mpi => false,
        }
    }

    /// The nodes of the current job; empty outside a job.
    pub fn allocation(self) -> Vec<Node> {
        let text = |name| std::env::var(name).unwrap_or_default();
        match self {
            BatchSystem::Slurm => {
                // Slurm uses the same syntax as configurations.
                let hosts = patterns(&text("SLURM_JOB_NODELIST")).unwrap_or_default();
                let hosts = hosts.iter().flat_map(Pattern::hosts);
                hosts.map(|host| Node { name: host.name, processors: None }).collect()
            }
            BatchSystem::HtCondor
            | BatchSystem::Pbs
            | BatchSystem::Torque
            | BatchSystem::Lsf
            | BatchSystem::Flux => Vec::new(),
            BatchSystem::Mpi => {
                let others =
                    [BatchSystem::Slurm, BatchSystem::GridEngine].map(BatchSystem::allocation);
                let other = others.into_iter().find(|nodes| !nodes.is_empty());
                other.unwrap_or_else(|| {
                    listed(&std::fs::read_to_string(text("PBS_NODEFILE")).unwrap_or_default())
                })
            }
            BatchSystem::GridEngine if !self.has_this() => Vec::new(),
            BatchSystem::GridEngine => {
                let file = std::fs::read_to_string(text("PE_HOSTFILE")).unwrap_or_default();
                let nodes = slots(&file);
                let here = || vec![Node { name: text("HOSTNAME"), processors: Some(1) }];
                if nodes.is_empty() { here() } else { nodes }
            }
        }
    }
}

/// The hosts of a Grid Engine parallel environment, from PE_HOSTFILE. Each line has a host, its number of
/// slots and the queue; a host has one line per queue.
fn slots(file: &str) -> Vec<Node> {
    let mut nodes: Vec<Node> = Vec::new();
    for line in file.lines() {
        let mut words = line.split_ascii_whitespace();
        let (Some(name), Some(slots)) = (words.next(), words.next()) else { continue };
        let Ok(slots) = slots.parse::<usize>() else { continue };
        match nodes.iter_mut().find(|node| node.name == name) {
            Some(node) => node.processors = node.processors.map(|other| other + slots),
            None => nodes.push(Node { name: name.to_owned(), processors: Some(slots) }),
        }
    }
    nodes
}

/// The hosts of a PBS or Torque job, from PBS_NODEFILE, which has one line per processor.
fn listed(file: &str) -> Vec<Node> {
    let mut nodes: Vec<Node> = Vec::new();
    for name in file.lines().map(str::trim).filter(|name| !name.is_empty()) {
        if nodes.iter().all(|node| node.name != name) {
            nodes.push(Node { name: name.to_owned(), processors: None });
        }
    }
    nodes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_of_a_parallel_environment_have_their_slots_of_all_queues() {
        let file = "n1.lab 4 all.q@n1.lab UNDEFINED\nn2.lab 2 all.q@n2.lab UNDEFINED\n\
                    n1.lab 1 long.q@n1.lab UNDEFINED\n\nodd\n";
        let node = |name: &str, slots| Node { name: name.into(), processors: Some(slots) };
        assert_eq!(slots(file), [node("n1.lab", 5), node("n2.lab", 2)]);
        assert_eq!(slots(""), []);
    }

    #[test]
    fn hosts_of_pbs_are_listed_once() {
        let names = |file| listed(file).into_iter().map(|node| node.name).collect::<Vec<_>>();
        assert_eq!(names("n1\nn1\nn2\n\nn1\n"), ["n1", "n2"]);
        assert_eq!(names(""), Vec::<String>::new());
    }
}
