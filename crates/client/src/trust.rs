//! Untrusted hosts. They run functions of compiled modules and receive nothing of Python. All other calls are bound
//! to groups without them.

use std::collections::{HashMap, HashSet};

use gridrpc_config::HostGroup;
use gridrpc_core::{Core, GroupId, Reservation, WorkerId};
use gridrpc_wire::FunctionForm;

use crate::error::GridError;
use crate::function::FunctionRef;

/// Name of all trusted executors together in errors.
const ALL: &str = "(all that are trusted)";

/// Trusted executors of a grid that has untrusted ones.
#[derive(Debug)]
pub(crate) struct Trust {
    untrusted: HashSet<WorkerId>,
    /// All trusted hosts and this machine; `None`: there are no such executors.
    all: Option<GroupId>,
    /// By group: its name, and the group of its trusted executors, if it has any.
    groups: HashMap<GroupId, (String, Option<GroupId>)>,
}

impl Trust {
    /// Returns `None` if all executors are trusted. The first host has the number `first`.
    pub(crate) fn of<T: Clone>(
        core: &mut Core<T>,
        first: u32,
        groups: &[HostGroup],
    ) -> Option<Trust> {
        let trusts = groups.iter().flat_map(|one| one.hosts.iter().map(|_| one.trusted));
        let (trusted, untrusted): (Vec<_>, Vec<_>) =
            (first..).map(WorkerId).zip(trusts).partition(|(_, is_trusted)| *is_trusted);
        if untrusted.is_empty() {
            return None;
        }
        let here = first > 0;
        let hosts: Vec<WorkerId> = trusted.into_iter().map(|(id, _)| id).collect();
        let all = (here || !hosts.is_empty()).then(|| core.add_group(ALL, here, hosts));
        let untrusted = untrusted.into_iter().map(|(id, _)| id).collect();
        Some(Trust { untrusted, all, groups: HashMap::new() })
    }

    /// Records a group of hosts that calls can be bound to.
    pub(crate) fn note<T: Clone>(
        &mut self,
        core: &mut Core<T>,
        id: GroupId,
        name: &str,
        hosts: &[WorkerId],
    ) {
        let is_trusted = |host: &&WorkerId| !self.untrusted.contains(host);
        let trusted: Vec<WorkerId> = hosts.iter().filter(is_trusted).copied().collect();
        let theirs = match trusted.len() {
            0 => None,
            all if all == hosts.len() => Some(id),
            _ => Some(core.add_group(name, false, trusted)),
        };
        self.groups.insert(id, (name.to_owned(), theirs));
    }

    /// Whether this executor is a trusted host or not a host.
    pub(crate) fn trusts(&self, id: WorkerId) -> bool {
        !self.untrusted.contains(&id)
    }

    /// The group for a call that has to run on a trusted executor, of one group or of any.
    ///
    /// # Errors
    /// When there is no such executor.
    pub(crate) fn bound(
        &self,
        group: Option<GroupId>,
        what: &str,
    ) -> Result<Option<GroupId>, GridError> {
        let (name, bound) = match group {
            None => (None, self.all),
            Some(id) => match self.groups.get(&id) {
                Some((name, theirs)) => (Some(name.clone()), *theirs),
                None => (None, Some(id)),
            },
        };
        if bound.is_some() {
            return Ok(bound);
        }
        Err(GridError::NotTrusted { what: what.to_owned(), group: name })
    }

    /// The group that a call is bound to. `refers`: it needs shared data, or results of other calls; `on`: a reserved
    /// worker has to run it.
    ///
    /// # Errors
    /// When it needs a trusted executor and none is available.
    pub(crate) fn bound_of<T: Clone>(
        &self,
        core: &Core<T>,
        function: &FunctionRef,
        refers: bool,
        group: Option<GroupId>,
        on: Option<Reservation>,
    ) -> Result<Option<GroupId>, GridError> {
        let is_typed = function.form() == FunctionForm::Library;
        if is_typed && !refers {
            return Ok(group);
        }
        let why = match is_typed {
            false => "a Python function",
            true => "called with shared data or results of calls",
        };
        let what = format!("`{}`, {why},", function.name());
        let home = on.and_then(|on| core.home(on.worker));
        if home.is_some_and(|home| !self.trusts(home)) {
            return Err(GridError::NotTrusted { what, group: None });
        }
        if on.is_some() { Ok(None) } else { self.bound(group, &what) }
    }
}
