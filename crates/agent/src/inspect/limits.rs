//! Limits on files and processes for the workers of a host.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit};
use nix::unistd::geteuid;
use serde::{Deserialize, Serialize};

/// Limit on processes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Processes {
    /// How many more can be started; none: only the kernel limits them.
    pub left: Option<u64>,
    /// The limit's name, for display; empty: no limit.
    pub bound: String,
}

/// Limit on open files of a process; agents and workers raise theirs as far as allowed.
pub(super) fn open_files() -> u64 {
    getrlimit(Resource::RLIMIT_NOFILE).map_or(0, |(_, hard)| hard)
}

impl Processes {
    /// The limit for this process.
    pub(super) fn here() -> Processes {
        let all = [of_user(), of_group()];
        let least = all.into_iter().flatten().min_by_key(|(left, _)| *left);
        match least {
            Some((left, bound)) => Processes { left: Some(left), bound },
            None => Processes::default(),
        }
    }
}

/// `ulimit -u`, which does not apply to root.
fn of_user() -> Option<(u64, String)> {
    let (soft, _) = getrlimit(Resource::RLIMIT_NPROC).ok()?;
    if soft == RLIM_INFINITY || geteuid().is_root() {
        return None;
    }
    let uid = geteuid().as_raw();
    let own = fs::read_dir("/proc").ok()?.flatten().filter(|entry| {
        let named = entry.file_name();
        let is_process = named.as_encoded_bytes().iter().all(u8::is_ascii_digit);
        is_process && entry.metadata().is_ok_and(|data| data.uid() == uid)
    });
    // The limit counts threads.
    let tasks = own.map(|entry| fs::read_dir(entry.path().join("task")).map_or(1, Iterator::count));
    let used: usize = tasks.sum();
    Some((soft.saturating_sub(used as u64), format!("`ulimit -u` is {soft}")))
}

/// Limit set by the control groups of this process.
fn of_group() -> Option<(u64, String)> {
    let member = fs::read_to_string("/proc/self/cgroup").ok()?;
    let allowed = groups(&member).into_iter().filter_map(|folder| {
        let read = |name| fs::read_to_string(folder.join(name)).ok();
        let most: u64 = read("pids.max")?.trim().parse().ok()?;
        let used: u64 = read("pids.current")?.trim().parse().ok()?;
        Some((most.saturating_sub(used), format!("`pids.max` of the control group is {most}")))
    });
    allowed.min_by_key(|(left, _)| *left)
}

/// Directories of the control groups that limit processes, innermost first. `member`: the content of
/// `/proc/self/cgroup`.
fn groups(member: &str) -> Vec<PathBuf> {
    let place = member.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':');
        let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        let first = controllers.split(',').any(|name| name == "pids");
        let root = if first { "/sys/fs/cgroup/pids" } else { "/sys/fs/cgroup" };
        (first || controllers.is_empty()).then(|| (root, path.to_owned()))
    });
    let Some((root, path)) = place else { return Vec::new() };
    let folders = Path::new(path.trim_start_matches('/')).ancestors();
    folders.map(|folder| Path::new(root).join(folder)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_of_both_versions_are_found() {
        let folders = |member| {
            let found = groups(member).into_iter();
            found.map(|folder| folder.display().to_string()).collect::<Vec<_>>()
        };
        let root = "/sys/fs/cgroup/";
        assert_eq!(
            folders("0::/job/3\n"),
            [format!("{root}job/3"), format!("{root}job"), root.to_owned()]
        );
        let first = "4:memory:/m\n3:cpu,pids:/p\n0::/\n";
        assert_eq!(folders(first), [format!("{root}pids/p"), format!("{root}pids/")]);
        assert!(folders("").is_empty());
    }
}
