//! Executors that may not run everything. Untrusted hosts receive nothing of Python; untrusted servers, which belong to
//! others, receive no modules either, and run only functions of their own. A call that some executors may not run is
//! bound to a group without them.

use std::collections::{HashMap, HashSet};

use gridrpc_config::{HostGroup, LauncherKind};
use gridrpc_core::{Core, GroupId, Reservation, WorkerId};

use crate::error::GridError;
use crate::function::FunctionRef;

/// Name of all trusted executors together in errors.
const ALL_TRUSTED: &str = "(all that are trusted)";
/// Name of all executors together that run modules of the client.
const ALL_WITH_MODULES: &str = "(all that run modules)";

/// Kinds of code that a call or a reserved worker runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// Python of the client.
    Python,
    /// A module of the client.
    Module,
    /// A function of the server itself.
    Offered,
}

/// Executors that may run one kind of code, where others may not.
#[derive(Debug)]
struct Allowed {
    refused: HashSet<WorkerId>,
    /// All others; `None`: there are none.
    all: Option<GroupId>,
    /// By group: its name, and the group of its executors that may, if it has any.
    groups: HashMap<GroupId, (String, Option<GroupId>)>,
}

impl Allowed {
    /// Returns `None` if no host is refused.
    fn of<T: Clone>(
        core: &mut Core<T>,
        first: u32,
        name: &str,
        is_refused: impl Iterator<Item = bool>,
    ) -> Option<Allowed> {
        let (refused, others): (Vec<_>, Vec<_>) =
            (first..).map(WorkerId).zip(is_refused).partition(|(_, is_refused)| *is_refused);
        if refused.is_empty() {
            return None;
        }
        let here = first > 0;
        let hosts: Vec<WorkerId> = others.into_iter().map(|(id, _)| id).collect();
        let all = (here || !hosts.is_empty()).then(|| core.add_group(name, here, hosts));
        let refused = refused.into_iter().map(|(id, _)| id).collect();
        Some(Allowed { refused, all, groups: HashMap::new() })
    }

    fn note<T: Clone>(&mut self, core: &mut Core<T>, id: GroupId, name: &str, hosts: &[WorkerId]) {
        let is_allowed = |host: &&WorkerId| !self.refused.contains(host);
        let allowed: Vec<WorkerId> = hosts.iter().filter(is_allowed).copied().collect();
        let theirs = match allowed.len() {
            0 => None,
            all if all == hosts.len() => Some(id),
            _ => Some(core.add_group(name, false, allowed)),
        };
        self.groups.insert(id, (name.to_owned(), theirs));
    }

    /// The part of a group, or of all executors, that may run it; else the name of the group.
    fn bound(&self, group: Option<GroupId>) -> Result<GroupId, Option<String>> {
        let (name, bound) = match group {
            None => (None, self.all),
            Some(id) => match self.groups.get(&id) {
                Some((name, theirs)) => (Some(name.clone()), *theirs),
                None => (None, Some(id)),
            },
        };
        bound.ok_or(name)
    }
}

/// What the executors of a grid may run, if not all may run everything.
#[derive(Debug)]
pub(crate) struct Trust {
    python: Option<Allowed>,
    modules: Option<Allowed>,
}

impl Trust {
    /// Returns `None` if all executors are trusted. The first host has the number `first`.
    pub(crate) fn of<T: Clone>(
        core: &mut Core<T>,
        first: u32,
        groups: &[HostGroup],
    ) -> Option<Trust> {
        let all = || groups.iter().flat_map(|group| group.hosts.iter().map(move |_| group));
        let of_others = |group: &HostGroup| {
            !group.trusted && matches!(group.launcher, LauncherKind::Server { .. })
        };
        let python = Allowed::of(core, first, ALL_TRUSTED, all().map(|group| !group.trusted));
        let modules = Allowed::of(core, first, ALL_WITH_MODULES, all().map(of_others));
        // Servers of others are untrusted.
        python.is_some().then_some(Trust { python, modules })
    }

    /// Records a group of hosts that calls can be bound to.
    pub(crate) fn note<T: Clone>(
        &mut self,
        core: &mut Core<T>,
        id: GroupId,
        name: &str,
        hosts: &[WorkerId],
    ) {
        for allowed in [&mut self.python, &mut self.modules].into_iter().flatten() {
            allowed.note(core, id, name, hosts);
        }
    }

    fn allowed(&self, code: Code) -> Option<&Allowed> {
        match code {
            Code::Python => self.python.as_ref(),
            Code::Module => self.modules.as_ref(),
            Code::Offered => None,
        }
    }

    /// Whether results of calls may stay on a host. Of an untrusted one the client accepts no promise to keep them.
    pub(crate) fn may_keep_results(&self, host: WorkerId) -> bool {
        let is_refused = |allowed: &Allowed| allowed.refused.contains(&host);
        !self.python.as_ref().is_some_and(is_refused)
    }

    /// The group for what runs this code, of one group or of any.
    ///
    /// # Errors
    /// When there is no such executor.
    pub(crate) fn bound(
        &self,
        code: Code,
        group: Option<GroupId>,
        what: &str,
    ) -> Result<Option<GroupId>, GridError> {
        let Some(allowed) = self.allowed(code) else { return Ok(group) };
        match allowed.bound(group) {
            Ok(bound) => Ok(Some(bound)),
            Err(group) => Err(refusal(code, what, group)),
        }
    }

    /// The group that a call is bound to. `refers`: it needs shared data, or unpickles results of other calls; `on`: a reserved
    /// worker has to run it.
    ///
    /// # Errors
    /// When no executor that is available may run it.
    pub(crate) fn bound_of<T: Clone>(
        &self,
        core: &Core<T>,
        function: &FunctionRef,
        refers: bool,
        group: Option<GroupId>,
        on: Option<Reservation>,
    ) -> Result<Option<GroupId>, GridError> {
        let code = match (function.is_native(), function.offer(), refers) {
            (true, Some(_), false) => Code::Offered,
            (true, None, false) => Code::Module,
            _ => Code::Python,
        };
        let Some(allowed) = self.allowed(code) else { return Ok(group) };
        let why = match (function.is_native(), refers) {
            (false, _) => "a Python function",
            (true, true) => "called with shared data",
            (true, false) => "a function of a module of this client",
        };
        let what = || format!("`{}`, {why},", function.name());
        let home = on.and_then(|on| core.home(on.worker));
        if home.is_some_and(|home| allowed.refused.contains(&home)) {
            return Err(refusal(code, &what(), None));
        }
        if on.is_some() { Ok(None) } else { self.bound(code, group, &what()) }
    }
}

fn refusal(code: Code, what: &str, group: Option<String>) -> GridError {
    let what = what.to_owned();
    match code {
        Code::Python => GridError::NotTrusted { what, group },
        Code::Module | Code::Offered => GridError::OnlyOffered { what, group },
    }
}
