//! Memory available to this process: that of the machine, or the limit of its control groups.
//!
//! Shared memory counts for the control group of its first writer. A process that exceeds its group's limit is
//! killed, so the limit is checked before memory is allocated: see `Pool::take` of gridrpc-shm.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::OnceLock;

use crate::control_groups::{self, Group};

/// Maximum memory of this process, bytes: that of the machine with its swap space, or the limit of its control
/// groups.
#[must_use]
pub fn most() -> u64 {
    static MOST: OnceLock<u64> = OnceLock::new();
    *MOST.get_or_init(|| {
        let allowed = groups().iter().filter_map(Group::most).min();
        crate::total_memory().min(allowed.unwrap_or(u64::MAX))
    })
}

/// Memory of this machine without swap space, or the limit of this process's control groups, bytes; 0: unknown.
#[must_use]
pub fn of_machine() -> u64 {
    let machine = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let machine = field(&machine, "MemTotal:").map_or(0, |kib| kib << 10);
    groups().iter().filter_map(Group::most).fold(machine, u64::min)
}

/// Parses a human-readable size: a number, and `KB`, `MB`, `GB` or `TB` (steps of 1,000), or `KiB` to `TiB` (steps of
/// 1,024), which batch systems write as `K` to `T`. `B` is bytes.
#[must_use]
pub fn size(text: &str) -> Option<u64> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = (&text[..end], text[end..].trim_start().to_ascii_uppercase());
    let (power, base) = match unit.as_str() {
        "B" => (0, 1000),
        unit => {
            let power = "KMGT".find(unit.chars().next()?)? as u32 + 1;
            match &unit[1..] {
                "B" => (power, 1000),
                "" | "IB" => (power, 1024),
                _ => return None,
            }
        }
    };
    let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
    let digits = |text: &str| (1..=20).contains(&text.len()) && !text.contains('.');
    if !digits(whole) || !digits(part) {
        return None;
    }
    let unit = u128::from(u64::pow(base, power));
    let part = part.parse::<u128>().ok()? * unit / 10_u128.pow(part.len() as u32);
    u64::try_from(whole.parse::<u128>().ok()? * unit + part).ok()
}

/// Whether control groups limit the memory of this process.
#[must_use]
pub fn is_bounded() -> bool {
    !groups().is_empty()
}

/// Memory that the control groups of this process still allow, bytes; `None`: no limit.
#[must_use]
pub fn left_in_groups() -> Option<u64> {
    groups().iter().filter_map(Group::left).min()
}

/// Memory that can be allocated now without any process being killed, bytes.
#[must_use]
pub fn left() -> u64 {
    let machine = fs::read_to_string("/proc/meminfo").ok();
    let machine = machine.and_then(|text| field(&text, "MemAvailable:")).map(|kib| kib << 10);
    machine.unwrap_or(u64::MAX).min(left_in_groups().unwrap_or(u64::MAX))
}

/// The error for a request that exceeds the available memory.
pub fn too_little(needed: u64, there: u64, of: &str) -> io::Error {
    let text = format!("it has {needed} bytes, and {of} {there}");
    io::Error::new(io::ErrorKind::OutOfMemory, text)
}

fn groups() -> &'static [Group] {
    static GROUPS: OnceLock<Vec<Group>> = OnceLock::new();
    GROUPS.get_or_init(|| {
        let found = control_groups::of_this_process(Path::new("/"), "memory");
        found.into_iter().filter(|group| group.most().is_some()).collect()
    })
}

impl Group {
    /// Its memory limit; `None`: no limit.
    fn most(&self) -> Option<u64> {
        let name = if self.version == 2 { "memory.max" } else { "memory.limit_in_bytes" };
        let most = self.read(name)?.trim().parse().ok()?;
        // Without a limit, version 1 contains the maximum number of pages.
        (most < 1 << 60).then_some(most)
    }

    fn left(&self) -> Option<u64> {
        let (current, inactive, active) = match self.version {
            2 => ("memory.current", "inactive_file ", "active_file "),
            _ => ("memory.usage_in_bytes", "total_inactive_file ", "total_active_file "),
        };
        let most = self.most()?;
        let used: u64 = self.read(current)?.trim().parse().ok()?;
        let parts = self.read("memory.stat").unwrap_or_default();
        // The kernel drops its file cache when it needs room.
        let files = field(&parts, inactive).unwrap_or(0) + field(&parts, active).unwrap_or(0);
        Some(most.saturating_sub(used.saturating_sub(files)))
    }
}

/// The number after a name at the start of a line.
fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        assert_eq!(size("4 GB"), Some(4_000_000_000));
        assert_eq!(
            (size("1.5KB"), size("0.5 KiB"), size("12 b")),
            (Some(1500), Some(512), Some(12))
        );
        assert_eq!((size("16G"), size("2tib")), (Some(16 << 30), Some(2 << 40)));
        let wrong = ["", "4", "GB", "4 XB", "-1 GB", "4 GBs", "1.2.3 GB", ".5 GB", "5. GB", "4 é"];
        assert!(wrong.into_iter().all(|text| size(text).is_none()));
        assert_eq!(size("99999999999999999 TB"), None, "more than can be counted");
        assert_eq!(size("9999999999999999999999 B"), None);
    }

    #[test]
    fn what_is_left_leaves_out_what_is_kept_of_files() {
        let folder = std::env::temp_dir().join(format!("gridrpc-group-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let write = |name: &str, text: &str| fs::write(folder.join(name), text).unwrap();
        let group = |version| Group { folder: folder.clone(), version };
        assert_eq!(group(2).left(), None);
        write("memory.max", "max\n");
        assert_eq!(group(2).left(), None);
        write("memory.max", "1000\n");
        write("memory.current", "800\n");
        write("memory.stat", "anon 100\ninactive_file 150\nactive_file 50\n");
        assert_eq!((group(2).most(), group(2).left()), (Some(1000), Some(400)));
        write("memory.limit_in_bytes", "9223372036854771712\n");
        assert_eq!(group(1).most(), None);
        write("memory.limit_in_bytes", "500\n");
        write("memory.usage_in_bytes", "900\n");
        assert_eq!(group(1).left(), Some(0));
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn this_machine_has_memory() {
        assert!(most() > 1 << 20 && left() <= most());
    }
}
