//! Summary of many hosts in a few lines. Hosts with the same status share a line.

use std::collections::HashMap;

/// Maximum number of lines.
const MOST_TOLD: usize = 20;

/// Hosts with the same status.
#[derive(Debug)]
struct Group {
    first: String,
    last: String,
    hosts: usize,
    /// Status line of the first host.
    line: String,
}

/// Summary lines for these hosts. Each host has its name, and a status line that begins with `host` and the name.
/// Lines that differ only in the name and in job numbers are merged. The last line may say how many hosts are left
/// out.
pub fn summarise_hosts(hosts: impl IntoIterator<Item = (String, String)>) -> Vec<String> {
    let mut groups: Vec<Group> = Vec::new();
    let mut places = HashMap::new();
    for (host, line) in hosts {
        let common = common(&host, &line);
        let place = *places.entry(common).or_insert(groups.len());
        match groups.get_mut(place) {
            Some(group) => {
                group.hosts += 1;
                group.last = host;
            }
            None => groups.push(Group { last: host.clone(), first: host, hosts: 1, line }),
        }
    }
    let more: usize = groups.iter().skip(MOST_TOLD).map(|group| group.hosts).sum();
    groups.truncate(MOST_TOLD);
    let mut lines: Vec<String> = groups.into_iter().map(describe).collect();
    match more {
        0 => {}
        1 => lines.push("and one more host".to_owned()),
        more => lines.push(format!("and {more} more hosts")),
    }
    lines
}

fn describe(group: Group) -> String {
    let Group { first, last, hosts, line } = group;
    if hosts == 1 {
        return line;
    }
    let how = line.strip_prefix(&format!("host {first} ")).unwrap_or(&line);
    format!("hosts {first} ... {last} ({hosts} hosts): {how}")
}

/// A status line without the host name and the job numbers.
fn common(host: &str, line: &str) -> String {
    let line = if host.is_empty() { line.to_owned() } else { line.replace(host, "\0") };
    let mut parts = line.split("job ");
    let mut common = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let number = |c: char| c.is_ascii_digit() || matches!(c, '_' | '.');
        common.push_str("job ");
        common.push_str(part.trim_start_matches(number));
    }
    common
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(hosts: std::ops::RangeInclusive<u32>, how: impl Fn(u32) -> String) -> Vec<String> {
        let host = |number| (format!("lab-{number}"), format!("host lab-{number} {}", how(number)));
        summarise_hosts(hosts.map(host))
    }

    #[test]
    fn hosts_with_the_same_message_share_a_line() {
        let describe = lines(1..=300, |number| format!("is queued as job 7_{number} (Resources)"));
        let expected = "hosts lab-1 ... lab-300 (300 hosts): is queued as job 7_1 (Resources)";
        assert_eq!(describe, [expected]);
        let describe = lines(1..=3, |number| match number {
            2 => "is starting on n2 (job 7_2)".to_owned(),
            _ => format!("failed: lab-{number} did not answer"),
        });
        let expected = [
            "hosts lab-1 ... lab-3 (2 hosts): failed: lab-1 did not answer",
            "host lab-2 is starting on n2 (job 7_2)",
        ];
        assert_eq!(describe, expected);
        assert!(summarise_hosts([]).is_empty());
    }

    #[test]
    fn there_are_so_many_lines_and_no_more() {
        let describe = lines(1..=20, |number| format!("has trouble {number}"));
        assert_eq!(describe.len(), 20);
        let describe = lines(1..=21, |number| format!("has trouble {number}"));
        assert_eq!(describe[20..], ["and one more host"]);
        let describe = lines(1..=40, |number| format!("has trouble {}", number.min(25)));
        assert_eq!(describe[20..], ["and 20 more hosts"]);
    }
}
