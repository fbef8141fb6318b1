//! Entries of the original Ninf: `module/function`, `ninf://host:port/module/function` or
//! `gridrpc://host:port/module/function`.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak};

use crate::environment::Environment;
use crate::failure::Failure;
use crate::handles::attributes::HandleAttributes;
use crate::handles::function::{FunctionHandle, HandleRequest};

/// A resolved entry.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Its function and calls.
    pub handle: Arc<FunctionHandle>,
    /// Whether it belongs to a group, which retries a call whose worker is lost.
    pub is_group: bool,
}

#[derive(Debug)]
struct Group {
    entry: Entry,
    sessions: Vec<i32>,
}

/// An open transaction.
#[derive(Debug, Default)]
pub struct Transaction {
    /// The sessions begun in it.
    pub sessions: Vec<i32>,
    /// Whether a call in it could not begin or has failed.
    pub has_failed: bool,
}

#[derive(Debug, Default)]
struct Entries {
    /// The default server, if the program has set one.
    server: Option<String>,
    /// Entries called by name, in this environment.
    known: HashMap<String, Entry>,
    of: Weak<Environment>,
    /// The open transaction, if there is one.
    transaction: Option<Transaction>,
    executables: HashMap<usize, Entry>,
    groups: HashMap<usize, Group>,
    last: usize,
}

static ENTRIES: LazyLock<Mutex<Entries>> = LazyLock::new(Mutex::default);

fn entries() -> MutexGuard<'static, Entries> {
    ENTRIES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Distance between addresses of executables and groups, since programs may expect alignment.
const STRIDE: usize = 16;

/// Sets the default server; an empty name restores the configured one.
pub fn set_server(host: &str) {
    let mut entries = entries();
    entries.server = (!host.is_empty()).then(|| host.to_owned());
    entries.known.clear();
}

/// Server and function of an entry.
fn parts(name: &str) -> (Option<&str>, &str) {
    if let Some(rest) = name.strip_prefix("gridrpc://") {
        let at = rest.find('/').map(|at| at + name.len() - rest.len());
        return at.map_or((None, name), |at| (Some(&name[..at]), &name[at + 1..]));
    }
    if name.starts_with("gridrpc+unix://") {
        // Behind the path of the socket: `module/function`.
        let at = name.rmatch_indices('/').nth(1).map(|(at, _)| at);
        return at.map_or((None, name), |at| (Some(&name[..at]), &name[at + 1..]));
    }
    match name.strip_prefix("ninf://").and_then(|rest| rest.split_once('/')) {
        Some(("", function)) => (None, function),
        Some((host, function)) => (Some(host), function),
        None => (None, name),
    }
}

/// Finds an entry by its name.
pub fn find(environment: &Arc<Environment>, name: &str) -> Result<Entry, Failure> {
    let mut all = entries();
    if !std::ptr::eq(all.of.as_ptr(), Arc::as_ptr(environment)) {
        // Entries of a finalized environment are of no use.
        all.known.clear();
        all.of = Arc::downgrade(environment);
    }
    if let Some(entry) = all.known.get(name) {
        return Ok(entry.clone());
    }
    let (server, function) = parts(name);
    let set = all.server.clone();
    drop(all);
    let usual = || std::env::var("NINF_SERVER").ok().filter(|server| !server.is_empty());
    let server = server.map(str::to_owned).or(set).or_else(usual);
    let request = HandleRequest {
        server,
        name: Some(function.to_owned()),
        attributes: HandleAttributes::default(),
    };
    let entry = make(environment, &request)?;
    entries().known.insert(name.to_owned(), entry.clone());
    Ok(entry)
}

fn make(environment: &Environment, request: &HandleRequest) -> Result<Entry, Failure> {
    let handle = environment.functions.resolve(request)?;
    environment.functions.provide_workers(&handle.defaults)?;
    Ok(Entry { handle: Arc::new(handle), is_group: false })
}

/// The same function with separate sessions.
fn anew(entry: &Entry) -> Entry {
    let FunctionHandle { function, defaults, .. } = &*entry.handle;
    let handle = FunctionHandle::new(Arc::clone(function), defaults.clone());
    Entry { handle: Arc::new(handle), is_group: false }
}

fn no_executable() -> Failure {
    Failure::other("this is not an executable: NULL, never made, or finalized")
}

fn no_group() -> Failure {
    Failure::other("this is not a group: NULL, never made, or finalized")
}

impl Entries {
    fn next_address(&mut self) -> usize {
        self.last += STRIDE;
        self.last
    }
}

/// Creates an executable and returns its address.
pub fn new_executable(entry: &Entry) -> usize {
    let mut all = entries();
    let address = all.next_address();
    all.executables.insert(address, anew(entry));
    address
}

/// The executable at an address.
pub fn executable(address: usize) -> Result<Entry, Failure> {
    entries().executables.get(&address).cloned().ok_or_else(no_executable)
}

/// Removes an executable.
pub fn remove_executable(address: usize) -> Result<Entry, Failure> {
    entries().executables.remove(&address).ok_or_else(no_executable)
}

/// Begins a transaction.
pub fn begin_transaction() -> Result<(), Failure> {
    let mut all = entries();
    if all.transaction.is_some() {
        return Err(Failure::other("a transaction has begun already, and cannot hold another one"));
    }
    all.transaction = Some(Transaction::default());
    Ok(())
}

/// Ends a transaction.
pub fn end_transaction() -> Result<Transaction, Failure> {
    entries().transaction.take().ok_or_else(|| Failure::other("no transaction has begun"))
}

/// Records a call, made synchronously or as this session, in the open transaction.
pub fn called(result: Result<Option<i32>, ()>) {
    if let Some(transaction) = &mut entries().transaction {
        match result {
            Ok(session) => transaction.sessions.extend(session),
            Err(()) => transaction.has_failed = true,
        }
    }
}

/// Creates a group and returns its address.
pub fn new_group(entry: &Entry) -> usize {
    let mut all = entries();
    let address = all.next_address();
    let entry = Entry { is_group: true, ..anew(entry) };
    all.groups.insert(address, Group { entry, sessions: Vec::new() });
    address
}

/// The entry of the group at an address.
pub fn group(address: usize) -> Result<Entry, Failure> {
    entries().groups.get(&address).map(|group| group.entry.clone()).ok_or_else(no_group)
}

/// Records a session in a group.
pub fn joined(address: usize, session: i32) {
    if let Some(group) = entries().groups.get_mut(&address) {
        group.sessions.push(session);
    }
}

/// Removes the sessions of a group and returns them.
pub fn take_sessions(address: usize) -> Result<Vec<i32>, Failure> {
    let mut all = entries();
    let group = all.groups.get_mut(&address).ok_or_else(no_group)?;
    Ok(std::mem::take(&mut group.sessions))
}

/// Removes a group.
pub fn remove_group(address: usize) -> Result<Entry, Failure> {
    entries().groups.remove(&address).map(|group| group.entry).ok_or_else(no_group)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_name_servers_or_none() {
        assert_eq!(parts("sample/mmul"), (None, "sample/mmul"));
        assert_eq!(parts("mmul"), (None, "mmul"));
        assert_eq!(parts("ninf://here:3000/sample/mmul"), (Some("here:3000"), "sample/mmul"));
        assert_eq!(parts("ninf:///mmul"), (None, "mmul"));
        assert_eq!(parts("ninf://"), (None, "ninf://"));
        assert_eq!(parts("gridrpc://lab:80/m/f"), (Some("gridrpc://lab:80"), "m/f"));
        assert_eq!(parts("gridrpc://lab/f"), (Some("gridrpc://lab"), "f"));
        assert_eq!(parts("gridrpc://lab"), (None, "gridrpc://lab"));
        let unix = "gridrpc+unix:///run/server.sock";
        assert_eq!(parts(&format!("{unix}/m/f")), (Some(unix), "m/f"));
    }
}
