//! Snapshot of a grid's statistics.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use gridrpc_core::{Activity, CallCounters, Time};

use crate::common::Common;
use crate::config::Config;
use crate::hosts::states::{HostState, Named, state_of};
use crate::live::{CallCounts, FunctionStats, HostStats, Stats};
use crate::state::State;
use crate::state::past_calls::OTHERS;
use crate::sync::now;

/// Maximum number of functions listed one by one.
const MOST_FUNCTIONS: usize = 200;
/// Maximum length of the command line, characters.
const LONGEST_PROGRAM: usize = 200;

/// Number of grids that this process has opened.
static GRIDS: AtomicU32 = AtomicU32::new(0);

/// Properties that do not change while a grid is open.
#[derive(Debug)]
pub(crate) struct About {
    /// Number of the grid in its process, from 1.
    pub(crate) number: u32,
    /// The group and the name of each host.
    pub(crate) hosts: Arc<[Named]>,
    /// Whether this machine has workers of its own.
    has_own_workers: bool,
    opened: Time,
}

impl About {
    pub(crate) fn new(config: &Config, hosts: Arc<[Named]>) -> About {
        let number = GRIDS.fetch_add(1, Ordering::Relaxed) + 1;
        let has_own_workers = config.settings.workers > 0;
        About { number, hosts, has_own_workers, opened: now() }
    }
}

/// The current statistics of the grid.
pub(crate) fn snapshot(common: &Common, about: &About) -> Stats {
    let state = common.lock();
    let core = &state.core;
    let (queued, live) = (core.queued(), core.live());
    let queued_bytes = core.queued_bytes();
    let (results_moved, results_not_moved) =
        (state.remote_results.moved, state.remote_results.not_moved);
    let call_counters = by_function(&state);
    let mut activities = core.activities();
    let here = activities.remove(&None).filter(|here| about.has_own_workers || here.reserved > 0);
    let closing = state.closing;
    let hosts = about.hosts.iter().filter_map(|named| {
        let activity = activities.remove(&Some(named.id)).unwrap_or_default();
        Some((state_of(&state, named)?, activity))
    });
    let hosts: Vec<(HostState, Activity)> = hosts.collect();
    drop(state);

    let machine = gridrpc_sys::host_name();
    let own = here.map(|here| local_stats(&machine, &here, closing));
    let hosts: Vec<HostStats> = own
        .into_iter()
        .chain(hosts.iter().map(|(host, activity)| host_stats(host, activity)))
        .collect();
    let sum = |of: fn(&HostStats) -> u64| hosts.iter().map(of).sum();
    let mut all = CallCounters::default();
    call_counters.values().for_each(|counters| all.add(counters));
    Stats {
        gridrpc: env!("CARGO_PKG_VERSION").to_owned(),
        pid: std::process::id(),
        grid: about.number,
        program: program(),
        uptime: now().since(about.opened) as f64 / 1e9,
        workers: sum(|host| host.workers),
        ready: sum(|host| host.ready),
        busy: sum(|host| host.busy),
        queued: queued as u64,
        queued_bytes,
        running: live.saturating_sub(queued) as u64,
        losses: sum(|host| host.losses),
        results_moved,
        results_not_moved,
        calls: counted(&all),
        functions: functions(call_counters),
        hosts,
        host: machine,
    }
}

/// Counters by name. Functions with the same name are merged.
fn by_function(state: &State) -> HashMap<String, CallCounters> {
    let mut call_counters: HashMap<String, CallCounters> = HashMap::new();
    let now = state.functions.iter().map(|function| &function.name).zip(state.core.call_counters());
    for (name, counters) in
        now.chain(state.past.iter()).filter(|(_, counters)| counters.submitted > 0)
    {
        match call_counters.get_mut(name) {
            Some(known) => known.add(counters),
            None => drop(call_counters.insert(name.clone(), *counters)),
        }
    }
    call_counters
}

/// The functions with the longest run time, one by one, and the others together.
fn functions(call_counters: HashMap<String, CallCounters>) -> Vec<FunctionStats> {
    let mut all: Vec<(String, CallCounters)> = call_counters.into_iter().collect();
    let weight = |counters: &CallCounters| std::cmp::Reverse((counters.ran, counters.submitted));
    all.sort_by(|(name, a), (other, b)| (weight(a), name).cmp(&(weight(b), other)));
    if all.len() > MOST_FUNCTIONS {
        let mut others = CallCounters::default();
        all.drain(MOST_FUNCTIONS..).for_each(|(_, counters)| others.add(&counters));
        all.push((OTHERS.to_owned(), others));
    }
    all.into_iter()
        .map(|(name, counters)| FunctionStats { name, calls: counted(&counters) })
        .collect()
}

fn counted(counters: &CallCounters) -> CallCounts {
    let CallCounters {
        submitted, returned, raised, cancelled, expired, lost, failed, inside, ..
    } = *counters;
    let CallCounters { argument_bytes, result_bytes, ran, .. } = *counters;
    let seconds = ran as f64 / 1e9;
    CallCounts {
        submitted,
        returned,
        raised,
        cancelled,
        expired,
        lost,
        failed,
        inside,
        argument_bytes,
        result_bytes,
        seconds,
    }
}

fn local_stats(machine: &str, activity: &Activity, closing: bool) -> HostStats {
    let state = match activity {
        _ if closing => "ending",
        Activity { ready: 0, workers: 1.., .. } => "starting",
        _ => "ready",
    };
    HostStats {
        server: "localhost".to_owned(),
        host: machine.to_owned(),
        state: state.to_owned(),
        ..at_work(activity)
    }
}

fn host_stats(host: &HostState, activity: &Activity) -> HostStats {
    HostStats {
        server: host.group.to_string(),
        host: host.host.to_string(),
        state: host.state.to_owned(),
        detail: host.detail.clone(),
        ..at_work(activity)
    }
}

fn at_work(activity: &Activity) -> HostStats {
    let Activity { workers, ready, busy, reserved, answered, losses } = *activity;
    HostStats {
        workers: workers as u64,
        ready: ready as u64,
        busy: busy as u64,
        reserved: reserved as u64,
        calls: answered,
        losses,
        ..HostStats::default()
    }
}

/// Name of this process, in place of its command line.
static PROGRAM: OnceLock<String> = OnceLock::new();

/// Sets the name of this process, which replaces its command line. The first name stays.
pub fn name_program(name: String) {
    let _ = PROGRAM.set(name);
}

/// The name of this process, or else its command line, in one line.
fn program() -> String {
    if let Some(name) = PROGRAM.get() {
        return name.clone();
    }
    let line = std::fs::read("/proc/self/cmdline").unwrap_or_default();
    let line = String::from_utf8_lossy(&line);
    let words = line.split(|c: char| c.is_control() || c.is_whitespace()).filter(|w| !w.is_empty());
    let text = words.collect::<Vec<_>>().join(" ");
    text.chars().take(LONGEST_PROGRAM).collect()
}
