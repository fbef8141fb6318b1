//! Number of processors that this process may use, by its affinity and its control groups.

use std::path::Path;
use std::sync::OnceLock;

use nix::sched::sched_getaffinity;
use nix::unistd::{Pid, SysconfVar, sysconf};

use crate::control_groups::{self, Group};

/// Number of processors that this process may use, at least 1. Quotas of control groups are rounded up, as in most
/// programs that support them.
#[must_use]
pub fn available() -> usize {
    static GROUPS: OnceLock<Vec<Group>> = OnceLock::new();
    let groups = GROUPS.get_or_init(|| bounding(Path::new("/")));
    at_most(allowed(), groups)
}

/// The smaller of a number of processors and the quotas of these groups.
fn at_most(processors: usize, groups: &[Group]) -> usize {
    let quotas = groups.iter().filter_map(Group::processors);
    quotas.fold(processors, usize::min).max(1)
}

/// Processors that the scheduler may run this process on.
fn allowed() -> usize {
    if let Ok(set) = sched_getaffinity(Pid::from_raw(0)) {
        let is_set = |processor: &usize| set.is_set(*processor).unwrap_or(false);
        return (0..nix::sched::CpuSet::count()).filter(is_set).count();
    }
    // There are more processors than a set has room for.
    let online = sysconf(SysconfVar::_NPROCESSORS_ONLN).ok().flatten();
    online.and_then(|number| usize::try_from(number).ok()).unwrap_or(1)
}

/// The groups that limit processor time.
fn bounding(root: &Path) -> Vec<Group> {
    let found = control_groups::of_this_process(root, "cpu");
    found.into_iter().filter(|group| group.processors().is_some()).collect()
}

impl Group {
    /// Its limit of processors, rounded up; `None`: no limit.
    fn processors(&self) -> Option<usize> {
        let number = |text: &str| text.trim().parse::<u64>().ok().filter(|number| *number > 0);
        // Without a quota, version 2 has `max`, and version 1 has -1.
        let (quota, period) = if self.version == 2 {
            let text = self.read("cpu.max")?;
            let (quota, period) = text.trim().split_once(' ')?;
            (number(quota)?, number(period)?)
        } else {
            (number(&self.read("cpu.cfs_quota_us")?)?, number(&self.read("cpu.cfs_period_us")?)?)
        };
        usize::try_from(quota.div_ceil(period)).ok()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use super::*;

    const MOUNTS: &str = "\
30 24 0:26 / /sys/fs/cgroup ro - tmpfs tmpfs ro
31 30 0:27 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
32 30 0:28 /docker/7 /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct
";

    /// A root folder with these files; it is removed when it is dropped.
    struct Root(PathBuf);

    impl Root {
        fn with(name: &str, files: &[(&str, &str)]) -> Root {
            let root = std::env::temp_dir().join(format!("gridrpc-{name}-{}", std::process::id()));
            let common = [
                ("proc/self/mountinfo", MOUNTS),
                ("proc/self/cgroup", "3:cpu,cpuacct:/docker/7/job/3\n0::/user.slice/9\n"),
            ];
            for (file, text) in common.iter().chain(files) {
                let file = root.join(file);
                fs::create_dir_all(file.parent().unwrap()).unwrap();
                fs::write(file, text).unwrap();
            }
            Root(root)
        }

        fn processors(&self) -> usize {
            at_most(64, &bounding(&self.0))
        }
    }

    impl Drop for Root {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn quotas_of_version_2_count_and_the_smallest_of_the_chain() {
        let unified = "sys/fs/cgroup/unified";
        let own = format!("{unified}/user.slice/9/cpu.max");
        let parent = format!("{unified}/user.slice/cpu.max");
        let with = |name, own_max, parent_max| {
            Root::with(name, &[(&own, own_max), (&parent, parent_max)]).processors()
        };
        assert_eq!(with("v2-none", "max 100000\n", "max 100000\n"), 64);
        assert_eq!(with("v2-own", "200000 100000\n", "max 100000\n"), 2);
        assert_eq!(with("v2-parent", "400000 100000\n", "150000 100000\n"), 2, "rounded up");
        assert_eq!(with("v2-part", "1000 100000\n", "max 100000\n"), 1);
        assert_eq!(with("v2-more", "9000000 100000\n", "max 100000\n"), 64);
        assert_eq!(with("v2-broken", "quick\n", "100000 0\n"), 64);
    }

    #[test]
    fn quotas_of_version_1_count_and_the_smallest_of_the_chain() {
        let cpu = "sys/fs/cgroup/cpu,cpuacct";
        let files = |folder: &str| {
            let file = |name| format!("{cpu}/{folder}cpu.cfs_{name}_us");
            (file("quota"), file("period"))
        };
        let ((own, own_period), (outer, outer_period)) = (files("job/3/"), files(""));
        let with = |name, own_quota, outer_quota| {
            let periods = [(&*own_period, "50000\n"), (&*outer_period, "100000\n")];
            let quotas = [(&*own, own_quota), (&*outer, outer_quota)];
            Root::with(name, &[periods, quotas].concat()).processors()
        };
        assert_eq!(with("v1-none", "-1\n", "-1\n"), 64);
        assert_eq!(with("v1-own", "150000\n", "-1\n"), 3);
        assert_eq!(with("v1-outer", "500000\n", "400000\n"), 4);
    }

    #[test]
    fn this_process_has_a_processor() {
        let most = std::thread::available_parallelism().unwrap().get() + 1;
        assert!((1..=most).contains(&available()));
        assert_eq!(at_most(7, &bounding(Path::new("/no/such"))), 7);
    }
}
