//! Control groups of this process: the kernel's limits for groups of processes, as containers and batch systems set
//! them.

use std::fs;
use std::path::{Path, PathBuf};

/// A control group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    pub(crate) folder: PathBuf,
    /// Version 1 or 2 of control groups, which name their files differently.
    pub(crate) version: u8,
}

impl Group {
    /// The text of one of its files; `None` if it has no such file.
    pub fn read(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.folder.join(name)).ok()
    }
}

/// The groups of a controller, such as "memory", that contain this process, the innermost first. `root`: the folder
/// that contains `/proc` and the mounted file systems.
pub fn of_this_process(root: &Path, controller: &str) -> Vec<Group> {
    let read = |path| fs::read_to_string(root.join(path)).unwrap_or_default();
    let mut found = find(&read("proc/self/mountinfo"), &read("proc/self/cgroup"), controller);
    for group in &mut found {
        group.folder = root.join(group.folder.strip_prefix("/").unwrap_or(&group.folder));
    }
    found
}

/// The groups of a controller that contain a process, the innermost first. `mounts` and `member`: the texts of
/// `/proc/self/mountinfo` and `/proc/self/cgroup`.
fn find(mounts: &str, member: &str, controller: &str) -> Vec<Group> {
    let mut found = Vec::new();
    for line in mounts.lines() {
        // "36 35 98:0 /root /mount options - cgroup2 source options": the middle part varies.
        let Some((place, kind)) = line.split_once(" - ") else { continue };
        let place: Vec<_> = place.split(' ').collect();
        let kind: Vec<_> = kind.split(' ').collect();
        let ([_, _, _, root, mount, ..], [kind, _, options]) = (&place[..], &kind[..]) else {
            continue;
        };
        let (version, listed) = match *kind {
            "cgroup2" => (2, ""),
            "cgroup" if options.split(',').any(|option| option == controller) => (1, controller),
            _ => continue,
        };
        let is_ours = |line: &&str| {
            let mut parts = line.splitn(3, ':').skip(1);
            parts.next().is_some_and(|names| names.split(',').any(|name| name == listed))
        };
        let Some(path) = member.lines().find(is_ours).and_then(|line| line.splitn(3, ':').nth(2))
        else {
            continue;
        };
        let mount = Path::new(mount);
        // In a container the group may be the root of the mount, or lie outside of it.
        let below = Path::new(path).strip_prefix(root).unwrap_or(Path::new(""));
        let own = mount.join(below);
        let chain = own.ancestors().take_while(|folder| folder.starts_with(mount));
        found.extend(chain.map(|folder| Group { folder: folder.to_owned(), version }));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
24 1 0:22 / /sys rw - sysfs sysfs rw
30 24 0:26 / /sys/fs/cgroup ro shared:9 - tmpfs tmpfs ro
31 30 0:27 / /sys/fs/cgroup/unified rw shared:10 - cgroup2 cgroup2 rw
32 30 0:28 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu
33 30 0:29 /docker/7 /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
broken";

    #[test]
    fn groups_are_found_from_the_innermost_out() {
        let found = find(MOUNTS, "4:memory:/docker/7/job/3\n3:cpu:/\n0::/user.slice\n", "memory");
        let listed: Vec<_> =
            found.iter().map(|group| (group.version, group.folder.to_str().unwrap())).collect();
        assert_eq!(
            listed,
            [
                (2, "/sys/fs/cgroup/unified/user.slice"),
                (2, "/sys/fs/cgroup/unified"),
                (1, "/sys/fs/cgroup/memory/job/3"),
                (1, "/sys/fs/cgroup/memory/job"),
                (1, "/sys/fs/cgroup/memory"),
            ]
        );
        // A container that only sees its own group, under a path of the host's.
        let outside = find(MOUNTS, "4:memory:/kubepods/9\n", "memory");
        assert_eq!(outside[0].folder, Path::new("/sys/fs/cgroup/memory"));
        assert_eq!(find("", "", "memory"), []);
    }
}
