//! Calls that need the results of other calls. Once the results exist, they become part of the arguments.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use gridrpc_core::{CallId, Time, WorkerId};
use gridrpc_link::buffers::Source;
use gridrpc_link::payload::{Incoming, Keeps, PayloadBuilder};
use gridrpc_sys::monotonic_ns;
use gridrpc_wire::dependency_table::Table;

use crate::call::{Call, Hold, Keeper, KeptPart, KeptResult};
use crate::common::Common;

/// A result that a call needs: here, on a host, or both.
struct Needed {
    hold: Arc<Hold>,
    here: Option<Vec<Incoming>>,
    there: Option<KeptResult>,
}

/// Which copy of it is used.
enum Used {
    Here(Vec<Incoming>),
    There(KeptResult),
}

/// State of the arguments of a call.
enum Gathered {
    Here,
    /// This many bytes of them are on this host.
    There(WorkerId, u64),
    /// These results have to be fetched first; the first of them has this number.
    Fetch(u64, Vec<Arc<Hold>>),
    /// These calls have to run again.
    Again(Vec<CallId>),
    /// This call has not returned.
    Failed(CallId),
    NoMemory(io::Error),
    /// The call has been cancelled.
    Unwanted,
}

/// Results of this many bytes and more are sent without a copy.
const LARGE: usize = 64 << 10;
/// How long one wait for a call that is about to settle may take.
const SOON: Duration = Duration::from_secs(1);

impl Keeps for Keeper {}

impl Common {
    /// Assembles the arguments of calls whose dependencies have ended, and sends the calls.
    pub(crate) fn gather(&self, ready: Vec<(CallId, Arc<Call>)>) {
        let near = |(id, call)| (id, call, true);
        let mut ready: Vec<(CallId, Arc<Call>, bool)> = ready.into_iter().map(near).collect();
        while !ready.is_empty() {
            let put_together = |(id, call, near): (CallId, Arc<Call>, bool)| {
                let gathered = self.put_together(&call, near);
                (id, call, gathered)
            };
            let gathered: Vec<_> =
                std::mem::take(&mut ready).into_iter().map(put_together).collect();
            let mut state = self.lock();
            let now = Time(monotonic_ns());
            let mut to_fetch = Vec::new();
            for (id, call, gathered) in gathered {
                match gathered {
                    Gathered::There(host, bytes) => {
                        let waits =
                            state.drive(|core, out| core.gathered_near(now, id, host, bytes, out));
                        if !waits {
                            ready.push((id, call, false));
                        }
                    }
                    Gathered::Fetch(first, holds) => {
                        // The arguments are assembled when the last result arrives.
                        ready.extend(state.kept.wait(first, (id, call)).map(near));
                        to_fetch.extend(holds);
                    }
                    other => state.drive(|core, out| match other {
                        Gathered::Again(calls) => core.blocked_again(id, &calls, out),
                        Gathered::Failed(dependency) => {
                            core.dependency_failed(now, id, dependency, out);
                        }
                        Gathered::NoMemory(error) => {
                            core.not_gathered(now, id, error.to_string().into(), out);
                        }
                        _ => core.gathered(now, id, out),
                    }),
                }
            }
            ready.extend(std::mem::take(&mut state.to_gather).into_iter().map(near));
            self.finish(state);
            to_fetch.iter().for_each(|hold| hold.0.fetch());
        }
    }

    /// `near`: results on a host may stay there.
    fn put_together(&self, call: &Call, near: bool) -> Gathered {
        let mut all = Vec::new();
        let mut again = Vec::new();
        for hold in call.needs() {
            let live = || hold.0.id().is_some_and(|id| self.lock().core.payload(id).is_some());
            // The core sees the call end slightly before its callers do.
            while !hold.0.settled(SOON) && !live() {}
            let (here, there) = (hold.0.returned().ok(), hold.0.kept());
            match hold.0.id() {
                _ if here.is_some() || there.is_some() => all.push(Needed { hold, here, there }),
                Some(id) if live() => again.push(id),
                Some(id) => return Gathered::Failed(id),
                None => return Gathered::Unwanted,
            }
        }
        if !again.is_empty() {
            return Gathered::Again(again);
        }
        let host = if near { where_most_is(&all) } else { None };
        let mut used = Vec::with_capacity(all.len());
        let mut missing = Vec::new();
        for Needed { hold, here, there } in all {
            match (here, there) {
                (_, Some(there)) if Some(there.keeper.host) == host => {
                    used.push(Used::There(there));
                }
                (Some(here), _) => used.push(Used::Here(here)),
                (None, Some(there)) => missing.push((there.keeper.call, hold)),
                (None, None) => return Gathered::Unwanted,
            }
        }
        if let Some((first, _)) = missing.first() {
            let first = *first;
            return Gathered::Fetch(first, missing.into_iter().map(|(_, hold)| hold).collect());
        }
        let Some(own) = call.take_own_arguments() else { return Gathered::Unwanted };
        let mut payload = self.payload().go_on_with(own);
        if near && sections_there(&used) >= payload.room() {
            call.give_back_arguments(payload.finish());
            return self.put_together(call, false);
        }
        if let Err(error) = add_results(&mut payload, &used) {
            return Gathered::NoMemory(error);
        }
        call.complete(payload.finish());
        host.map_or(Gathered::Here, |host| Gathered::There(host, bytes_there(&used)))
    }
}

/// The host that holds most of the results.
fn where_most_is(needed: &[Needed]) -> Option<WorkerId> {
    let mut bytes: Vec<(WorkerId, u64)> = Vec::new();
    for kept in needed.iter().filter_map(|needed| needed.there.as_ref()) {
        match bytes.iter_mut().find(|(host, _)| *host == kept.keeper.host) {
            Some((_, sum)) => *sum += kept.bytes(),
            None => bytes.push((kept.keeper.host, kept.bytes())),
        }
    }
    bytes.into_iter().max_by_key(|(_, sum)| *sum).map(|(host, _)| host)
}

/// Number of bytes of the results on a host.
fn bytes_there(used: &[Used]) -> u64 {
    let there = |used: &Used| match used {
        Used::Here(_) => 0,
        Used::There(kept) => kept.bytes(),
    };
    used.iter().map(there).sum()
}

/// Number of sections of the results on a host.
fn sections_there(used: &[Used]) -> usize {
    let there = |used: &Used| match used {
        Used::Here(_) => 0,
        Used::There(kept) => kept.parts.len(),
    };
    used.iter().map(there).sum()
}

/// Adds the results to the arguments of the call that needs them.
fn add_results(payload: &mut PayloadBuilder<'_>, used: &[Used]) -> io::Result<()> {
    let count = |used: &Used| match used {
        Used::Here(sections) => sections.len(),
        Used::There(kept) => kept.parts.len(),
    };
    let counts: Vec<usize> = used.iter().map(count).collect();
    let mut table = Table::new(&counts);
    for (used, count) in used.iter().zip(counts) {
        table.begin(count);
        match used {
            Used::Here(sections) => {
                for section in sections {
                    add_section(payload, &mut table, section)?;
                }
            }
            Used::There(KeptResult { keeper, parts }) => {
                for (index, part) in parts.iter().enumerate() {
                    match part {
                        KeptPart::Here(section) => add_section(payload, &mut table, section)?,
                        KeptPart::There(len) => {
                            table.refer(payload.sections(), *len as usize);
                            let (call, held) = (keeper.call, Arc::clone(keeper));
                            payload.add_kept(call, index as u16, *len, held);
                        }
                    }
                }
            }
        }
    }
    payload.add_owned(table.finish())
}

fn add_section(
    payload: &mut PayloadBuilder<'_>,
    table: &mut Table,
    section: &Incoming,
) -> io::Result<()> {
    // The table takes a section too.
    if payload.room() > 1 && payload.passes_on(section) {
        table.refer(payload.sections(), section.len());
        payload.pass_on(section)
    } else if payload.room() > 1 && !payload.has_shared_memory() && section.len() >= LARGE {
        table.refer(payload.sections(), section.len());
        payload.add_source(Arc::new(Source::held(section.clone())));
        Ok(())
    } else {
        table.pack(section.bytes());
        Ok(())
    }
}
