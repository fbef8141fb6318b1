//! A control group for each worker process, which limits the worker together with its children.
//!
//! This process needs permission to make groups below its own: as root, or with `Delegate=yes` in a systemd unit.
//! Groups of version 2 that contain processes cannot have limited subgroups, so this process moves into a subgroup.
//! All groups lie in one folder per process. Those of a process that was killed are removed by the next one.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::control_groups::{self, Group};
use crate::worker_limits::{Grouped, WorkerLimits};

/// Start of the names of our groups, before the process id.
const PREFIX: &str = "gridrpc-";
/// Name of the group that this process moves into, after the process id.
const OWN: &str = ".own";
/// Number of attempts to make a group.
const TRIES: u32 = 4;

/// Where the groups of workers are made, and their limits.
#[derive(Clone, Debug)]
pub struct WorkerGroups {
    bases: Vec<Base>,
    memory: Option<u64>,
    processes: Option<u64>,
}

/// A folder of groups of one hierarchy.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Base {
    folder: PathBuf,
    version: u8,
    holds: Grouped,
}

/// The group of one worker process, in each hierarchy. It remains until [`WorkerGroup::remove`].
#[derive(Debug)]
pub struct WorkerGroup {
    groups: Vec<Base>,
}

impl WorkerGroups {
    /// Finds where groups with these limits can be made. The second part says why some limits are not held by groups.
    #[must_use]
    pub fn find(limits: &WorkerLimits) -> (WorkerGroups, Vec<String>) {
        let wanted = [("memory", limits.memory.is_some()), ("pids", limits.processes.is_some())];
        let mut bases: Vec<Base> = Vec::new();
        let mut reasons = Vec::new();
        for (controller, _) in wanted.into_iter().filter(|(_, wanted)| *wanted) {
            match Base::of_this_process(controller) {
                Ok(base) => {
                    let known = bases.iter().position(|known| known.folder == base.folder);
                    let index = known.unwrap_or_else(|| {
                        bases.push(base);
                        bases.len() - 1
                    });
                    let holds = &mut bases[index].holds;
                    holds.memory |= controller == "memory";
                    holds.processes |= controller == "pids";
                }
                Err(error) => reasons.push(format!("no control group for `{controller}`: {error}")),
            }
        }
        let WorkerLimits { memory, processes, .. } = *limits;
        (WorkerGroups { bases, memory, processes }, reasons)
    }

    /// The limits that groups hold.
    #[must_use]
    pub fn holds(&self) -> Grouped {
        Grouped {
            memory: self.bases.iter().any(|base| base.holds.memory),
            processes: self.bases.iter().any(|base| base.holds.processes),
        }
    }

    /// The memory limit that groups hold, bytes.
    #[must_use]
    pub fn memory(&self) -> Option<u64> {
        self.memory.filter(|_| self.holds().memory)
    }

    /// Makes a group for a process, and puts it there. Only processes that it starts later are put there with it.
    ///
    /// # Errors
    /// When the system refuses it.
    pub fn confine(&self, pid: u32) -> io::Result<WorkerGroup> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let name = MADE.fetch_add(1, Ordering::Relaxed).to_string();
        let mut group = WorkerGroup { groups: Vec::new() };
        for base in &self.bases {
            let folder = base.folder.join(&name);
            group.groups.push(Base { folder, ..base.clone() });
            let made = base.make(&name, self.memory, self.processes);
            let entered = made.and_then(|folder| write(&folder, "cgroup.procs", &pid.to_string()));
            if let Err(error) = entered {
                group.remove();
                return Err(error);
            }
        }
        Ok(group)
    }
}

impl WorkerGroup {
    /// Whether the kernel has killed one of its processes for lack of memory.
    #[must_use]
    pub fn ran_out_of_memory(&self) -> bool {
        self.groups.iter().filter(|group| group.holds.memory).any(|group| {
            let name = if group.version == 2 { "memory.events" } else { "memory.oom_control" };
            let text = fs::read_to_string(group.folder.join(name)).unwrap_or_default();
            let kills = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
            kills.is_some_and(|kills| kills.trim() != "0")
        })
    }

    /// Kills all processes in it.
    pub fn kill(&self) {
        for group in &self.groups {
            if group.version == 2 && write(&group.folder, "cgroup.kill", "1").is_ok() {
                continue;
            }
            let pids = fs::read_to_string(group.folder.join("cgroup.procs")).unwrap_or_default();
            for pid in pids.lines().filter_map(|pid| pid.parse().ok()).filter(|pid| *pid > 0) {
                let pid = nix::unistd::Pid::from_raw(pid);
                // It may have ended by itself.
                let _ = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL);
            }
        }
    }

    /// Removes it, if it contains no process any more. Returns whether it is gone.
    pub fn remove(&mut self) -> bool {
        self.groups.retain(|group| {
            let removed = fs::remove_dir(&group.folder);
            if let Some(base) = group.folder.parent() {
                // Fails while other workers have groups.
                let _ = fs::remove_dir(base);
            }
            removed.is_err_and(|error| error.kind() != io::ErrorKind::NotFound)
        });
        self.groups.is_empty()
    }
}

impl Base {
    /// The folder for groups of this process in the hierarchy of a controller.
    fn of_this_process(controller: &str) -> io::Result<Base> {
        let groups = control_groups::of_this_process(Path::new("/"), controller);
        let offers = |group: &&Group| {
            let offered = group.read("cgroup.controllers").unwrap_or_default();
            group.version == 1 || offered.split_whitespace().any(|name| name == controller)
        };
        let own = groups.iter().find(offers).ok_or_else(|| {
            io::Error::new(io::ErrorKind::Unsupported, "the system has none here")
        })?;
        Base::below(own, controller, std::process::id())
    }

    fn below(own: &Group, controller: &str, pid: u32) -> io::Result<Base> {
        let mut outer = own.folder.clone();
        let moved = format!("{PREFIX}{pid}{OWN}");
        if outer.file_name().is_some_and(|name| *name == *moved) {
            // This process has moved before.
            outer.pop();
        }
        remove_stale(&outer);
        let folder = outer.join(format!("{PREFIX}{pid}"));
        let base = Base { folder, version: own.version, holds: Grouped::default() };
        if own.version == 2 && enable(&outer, controller).is_err() {
            let own = outer.join(&moved);
            make_folder(&own)?;
            write(&own, "cgroup.procs", &pid.to_string())?;
            enable(&outer, controller)?;
        }
        // Whether groups can be made has to be known before the first worker is.
        make_folder(&base.folder)?;
        if own.version == 2 {
            enable(&base.folder, controller)?;
        }
        let _ = fs::remove_dir(&base.folder);
        Ok(base)
    }

    fn make_folders(&self, group: &Path) -> io::Result<()> {
        let Base { folder: base, version, holds } = self;
        make_folder(base)?;
        for (controller, holds) in [("memory", holds.memory), ("pids", holds.processes)] {
            if *version == 2 && holds {
                enable(base, controller)?;
            }
        }
        make_folder(group)
    }

    /// Makes a group with limits. Returns its folder.
    fn make(&self, name: &str, memory: Option<u64>, processes: Option<u64>) -> io::Result<PathBuf> {
        let Base { folder: base, version, holds } = self;
        let folder = base.join(name);
        // Another grid of this process may just have removed the folder of all groups.
        for tries_left in (0..TRIES).rev() {
            match self.make_folders(&folder) {
                Err(error) if error.kind() == io::ErrorKind::NotFound && tries_left > 0 => {}
                made => {
                    made?;
                    break;
                }
            }
        }
        if let Some(memory) = memory.filter(|_| holds.memory) {
            let memory = memory.to_string();
            // Without accounting of swap space there are no files for it. A worker whose child was killed ends too.
            let (limit, others) = match version {
                2 => ("memory.max", &[("memory.swap.max", "0"), ("memory.oom.group", "1")][..]),
                _ => ("memory.limit_in_bytes", &[("memory.memsw.limit_in_bytes", &*memory)][..]),
            };
            write(&folder, limit, &memory)?;
            for (name, value) in others {
                let _ = write(&folder, name, value);
            }
        }
        if let Some(processes) = processes.filter(|_| holds.processes) {
            write(&folder, "pids.max", &processes.to_string())?;
        }
        Ok(folder)
    }
}

fn enable(folder: &Path, controller: &str) -> io::Result<()> {
    write(folder, "cgroup.subtree_control", &format!("+{controller}"))
}

fn make_folder(folder: &Path) -> io::Result<()> {
    match fs::create_dir(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(naming(folder, &error)),
        _ => Ok(()),
    }
}

/// Writes to a file of a group, which exists.
fn write(folder: &Path, name: &str, text: &str) -> io::Result<()> {
    use std::io::Write;
    let file = folder.join(name);
    let written = fs::File::options()
        .write(true)
        .open(&file)
        .and_then(|mut to| to.write_all(text.as_bytes()));
    written.map_err(|error| naming(&file, &error))
}

fn naming(file: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("`{}`: {error}", file.display()))
}

/// Removes the groups of processes that no longer exist.
fn remove_stale(outer: &Path) {
    for entry in fs::read_dir(outer).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
        let pid = pid.map(|pid| pid.strip_suffix(OWN).unwrap_or(pid));
        let Some(pid) = pid.and_then(|pid| pid.parse::<u32>().ok()) else { continue };
        if !Path::new("/proc").join(pid.to_string()).exists() {
            for inner in fs::read_dir(entry.path()).into_iter().flatten().flatten() {
                let _ = fs::remove_dir(inner.path());
            }
            let _ = fs::remove_dir(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};

    use super::*;

    /// A shell that runs a script on request.
    fn shell(script: &str) -> Child {
        let script = format!("read line; {script}");
        Command::new("/bin/sh").args(["-c", &script]).stdin(Stdio::piped()).spawn().unwrap()
    }

    /// Groups with these limits, if this process may make them.
    fn groups(limits: &WorkerLimits) -> Option<WorkerGroups> {
        let (groups, reasons) = WorkerGroups::find(limits);
        if !reasons.is_empty() {
            eprintln!("skipped: {reasons:?}");
        }
        reasons.is_empty().then_some(groups)
    }

    fn run(mut child: Child) -> std::process::ExitStatus {
        drop(child.stdin.take());
        child.wait().unwrap()
    }

    #[test]
    fn a_process_that_uses_too_much_memory_is_killed() {
        let limits = WorkerLimits { memory: Some(32 << 20), ..WorkerLimits::NONE };
        let Some(groups) = groups(&limits) else { return };
        let hog = shell("head -c 200000000 /dev/zero | tail > /dev/null");
        let mut group = groups.confine(hog.id()).unwrap();
        let neighbour = shell("exit 0");
        let mut other = groups.confine(neighbour.id()).unwrap();
        assert_ne!(group.groups, other.groups);
        let ended = run(hog);
        assert!(!ended.success(), "{ended}");
        assert!(group.ran_out_of_memory() && !other.ran_out_of_memory());
        assert!(run(neighbour).success());
        assert!(group.remove() && other.remove());
    }

    #[test]
    fn a_fork_bomb_stays_within_its_group_and_is_killed_with_it() {
        let limits = WorkerLimits { processes: Some(5), ..WorkerLimits::NONE };
        let Some(groups) = groups(&limits) else { return };
        let bomb = shell("for i in 1 2 3 4 5 6 7 8 9; do sleep 60 & done 2> /dev/null");
        let mut group = groups.confine(bomb.id()).unwrap();
        let folder = group.groups[0].folder.clone();
        let count = || fs::read_to_string(folder.join("cgroup.procs")).unwrap().lines().count();
        let ended = run(bomb);
        assert!(!ended.success(), "all nine could be started");
        assert!((2..=5).contains(&count()), "{} processes", count());
        assert!(!group.remove(), "they are still there");
        group.kill();
        let gone = (0..500).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(10));
            group.remove()
        });
        assert!(gone && !folder.exists());
    }

    #[test]
    fn a_group_of_version_2_has_all_limits() {
        let outer = std::env::temp_dir().join(format!("gridrpc-groups-{}", std::process::id()));
        let inner = outer.join("gridrpc-7").join("0");
        fs::create_dir_all(&inner).unwrap();
        for name in ["memory.max", "memory.swap.max", "memory.oom.group", "pids.max"] {
            fs::write(inner.join(name), "").unwrap();
        }
        for folder in [&outer, &outer.join("gridrpc-7")] {
            fs::write(folder.join("cgroup.subtree_control"), "").unwrap();
        }
        let own = Group { folder: outer.clone(), version: 2 };
        let mut base = Base::below(&own, "memory", 7).unwrap();
        assert_eq!(base.folder, outer.join("gridrpc-7"));
        let read = |folder: &Path, name: &str| fs::read_to_string(folder.join(name)).unwrap();
        assert_eq!(read(&outer, "cgroup.subtree_control"), "+memory");
        base.holds = Grouped { memory: true, processes: true };
        assert_eq!(base.make("0", Some(1 << 25), Some(9)).unwrap(), inner);
        assert_eq!(read(&inner, "memory.max"), "33554432");
        assert_eq!(
            (read(&inner, "memory.swap.max"), read(&inner, "pids.max")),
            ("0".into(), "9".into())
        );
        fs::write(inner.join("memory.events"), "low 0\noom 3\noom_kill 2\n").unwrap();
        let group = WorkerGroup { groups: vec![Base { folder: inner, ..base }] };
        assert!(group.ran_out_of_memory());
        fs::remove_dir_all(&outer).unwrap();
    }

    #[test]
    fn groups_of_dead_processes_are_removed() {
        let outer = std::env::temp_dir().join(format!("gridrpc-stale-{}", std::process::id()));
        let ours = outer.join(format!("{PREFIX}{}", std::process::id()));
        // No process has such a number.
        let stale = outer.join(format!("{PREFIX}4194305"));
        for folder in [&ours, &stale.join("0"), &outer.join("gridrpc-other")] {
            fs::create_dir_all(folder).unwrap();
        }
        remove_stale(&outer);
        assert!(!stale.exists() && ours.exists() && outer.join("gridrpc-other").exists());
        fs::remove_dir_all(&outer).unwrap();
    }
}
