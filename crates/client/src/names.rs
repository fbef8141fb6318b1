//! Names that calls and reserved workers can be bound to. A name means a host group, a host of one or several groups,
//! or this machine.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};

use gridrpc_config::{HostGroup, LauncherKind};
use gridrpc_core::{GroupId, WorkerId};

/// Maximum number of names in an error message.
const MOST_TOLD: usize = 20;

/// Name of this machine.
const HERE: &str = "localhost";

/// The names of a grid.
#[derive(Debug)]
pub(crate) struct Names {
    /// The number of the first host.
    first: u32,
    /// Host groups and the names of their hosts, in the order of the core's.
    groups: Vec<(String, Vec<String>)>,
    /// Whether each host serves other clients as well.
    shared: Vec<bool>,
    /// Whether this machine has workers of its own.
    here: bool,
    known: Mutex<HashMap<String, GroupId>>,
}

/// Meaning of a name.
#[derive(Debug, PartialEq, Eq)]
enum NameTarget {
    Here,
    Hosts(Vec<WorkerId>),
}

impl Names {
    /// Names of a grid with this many workers on this machine.
    pub(crate) fn new(workers: u32, groups: &[HostGroup]) -> Names {
        let hosts = |group: &HostGroup| group.hosts.iter().map(|host| host.name.clone()).collect();
        let is_shared = |group: &HostGroup| {
            let shared = matches!(
                group.launcher,
                LauncherKind::Session { .. } | LauncherKind::Server { .. }
            );
            std::iter::repeat_n(shared, group.hosts.len())
        };
        let shared = groups.iter().flat_map(is_shared).collect();
        let groups = groups.iter().map(|group| (group.name.clone(), hosts(group)));
        let (groups, known) = (groups.collect(), Mutex::default());
        Names { first: workers, groups, shared, here: workers > 0, known }
    }

    /// Whether the grid has executors other than this machine's own workers.
    pub(crate) fn has_hosts(&self) -> bool {
        !self.groups.is_empty()
    }

    /// The meaning of this name. `add` makes a group for hosts whose name is used for the first time.
    ///
    /// # Errors
    /// All names, when the name is unknown.
    pub(crate) fn find(
        &self,
        name: &str,
        add: impl FnOnce(Vec<WorkerId>) -> GroupId,
    ) -> Result<GroupId, Vec<String>> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(id) = known.get(name) {
            return Ok(*id);
        }
        let id = match self.meaning(name) {
            Some(NameTarget::Here) => GroupId::HERE,
            Some(NameTarget::Hosts(hosts)) => add(hosts),
            None => return Err(self.all()),
        };
        known.insert(name.to_owned(), id);
        Ok(id)
    }

    /// Whether a host of this name serves other clients as well.
    pub(crate) fn is_shared(&self, name: &str) -> bool {
        let Some(NameTarget::Hosts(hosts)) = self.meaning(name) else { return false };
        hosts.iter().any(|host| self.shared[(host.0 - self.first) as usize])
    }

    /// The only host of a group; none: it has several, or there is no such group.
    pub(crate) fn only_host(&self, group: &str) -> Option<WorkerId> {
        match self.hosts(|of, _| of == group)[..] {
            [host] => Some(host),
            _ => None,
        }
    }

    /// Hosts that `is_meant` accepts, given the name of their group and their own.
    fn hosts(&self, is_meant: impl Fn(&str, &str) -> bool) -> Vec<WorkerId> {
        let all = self.groups.iter().flat_map(|(group, hosts)| {
            hosts.iter().map(move |host| (group.as_str(), host.as_str()))
        });
        let numbered = all.enumerate().filter(|(_, (group, host))| is_meant(group, host));
        numbered.map(|(index, _)| WorkerId(self.first + index as u32)).collect()
    }

    fn meaning(&self, name: &str) -> Option<NameTarget> {
        let is_host = |host: &str| {
            let (_, bare) = host.rsplit_once('@').unwrap_or(("", host));
            host == name || bare.eq_ignore_ascii_case(name)
        };
        let of_group = self.hosts(|group, _| group == name);
        let meant =
            if of_group.is_empty() { self.hosts(|_, host| is_host(host)) } else { of_group };
        if !meant.is_empty() {
            return Some(NameTarget::Hosts(meant));
        }
        let own = [HERE, &gridrpc_sys::host_name()];
        let is_here = self.here && own.iter().any(|own| own.eq_ignore_ascii_case(name));
        is_here.then_some(NameTarget::Here)
    }

    /// All names: those of the groups, of hosts with other names, and of this machine.
    fn all(&self) -> Vec<String> {
        let mut all: Vec<String> = self.groups.iter().map(|(group, _)| group.clone()).collect();
        let hosts = self.groups.iter().flat_map(|(_, hosts)| hosts);
        for name in hosts.map(String::as_str).chain(self.here.then_some(HERE)) {
            if !all.iter().any(|known| known == name) {
                all.push(name.to_owned());
            }
        }
        all
    }
}

/// A list of the valid names, for people.
pub(crate) fn listed(known: &[String]) -> String {
    let Some((last, others)) = known.split_last() else { return "none".to_owned() };
    if known.len() > MOST_TOLD {
        let some: Vec<String> = known[..MOST_TOLD].iter().map(|name| format!("{name:?}")).collect();
        return format!("{} and {} more", some.join(", "), known.len() - MOST_TOLD);
    }
    let mut text = String::new();
    for (index, name) in others.iter().enumerate() {
        let _ = write!(text, "{}{name:?}", if index > 0 { ", " } else { "" });
    }
    if others.is_empty() { format!("{last:?}") } else { format!("{text} and {last:?}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gridrpc_config::Host;

    fn names(workers: u32) -> Names {
        let group = |name: &str, hosts: &[&str]| {
            let hosts = hosts.iter().map(|host| Host::named(*host)).collect();
            HostGroup::new(name, LauncherKind::Local { prefix: Vec::new() }, hosts)
        };
        let groups = [
            group("lab", &["node1", "ann@node2"]),
            group("node3", &["node3"]),
            group("spare", &["Node1", "lab"]),
        ];
        Names::new(workers, &groups)
    }

    fn hosts(hosts: &[u32]) -> Option<NameTarget> {
        Some(NameTarget::Hosts(hosts.iter().copied().map(WorkerId).collect()))
    }

    #[test]
    fn groups_go_before_hosts_and_these_before_this_machine() {
        let names = names(2);
        assert_eq!(names.meaning("lab"), hosts(&[2, 3]));
        assert_eq!(names.meaning("node3"), hosts(&[4]));
        assert_eq!(names.meaning("node1"), hosts(&[2, 5]));
        assert_eq!(names.meaning("node2"), hosts(&[3]));
        assert_eq!(names.meaning("ann@node2"), hosts(&[3]));
        assert_eq!(names.meaning("bob@node2"), None);
        assert_eq!(names.meaning("localhost"), Some(NameTarget::Here));
        assert_eq!(names.meaning(&gridrpc_sys::host_name()), Some(NameTarget::Here));
        for unknown in ["", "PAIR", "node", "node4"] {
            assert_eq!(names.meaning(unknown), None, "{unknown}");
        }
    }

    #[test]
    fn a_machine_without_workers_has_no_name() {
        assert_eq!(names(0).meaning("localhost"), None);
        assert_eq!(names(0).meaning("lab"), hosts(&[0, 1]));
    }

    #[test]
    fn known_names_are_reported_once() {
        let all = names(1).all();
        assert_eq!(
            listed(&all),
            r#""lab", "node3", "spare", "node1", "ann@node2", "Node1" and "localhost""#
        );
        assert_eq!(listed(&[]), "none");
        assert_eq!(listed(&["one".into()]), r#""one""#);
        let many: Vec<String> = (0..25).map(|at| at.to_string()).collect();
        assert!(listed(&many).ends_with(r#""19" and 5 more"#));
    }
}
