//! Calls that need the results of other calls. Once the results exist, they become part of the arguments.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use gridrpc_core::{CallId, Time, WorkerId};
use gridrpc_link::buffers::Source;
use gridrpc_link::payload::{Incoming, KeepAlive, PayloadBuilder};
use gridrpc_sys::monotonic_ns;
use gridrpc_wire::dependency_table::Table;
use gridrpc_wire::{DType, Order, Value, decode_values};

use crate::call::{Call, Hold, RemotePart, RemoteResult, ResultArray, ResultLease};
use crate::common::Common;

/// A result that a call needs: here, on a host, or both.
struct NeededResult {
    hold: Arc<Hold>,
    here: Option<(Vec<Incoming>, Order)>,
    there: Option<RemoteResult>,
    /// The array that a module function takes of it. `None`: a Python function takes all of it.
    array: Option<ArraySection>,
}

/// An array among the sections of a result.
#[derive(Clone, Copy)]
struct ArraySection {
    section: usize,
    dtype: DType,
}

/// Which copy of a result is used, and the array that is taken of it.
struct Used {
    from: ResultSource,
    array: Option<ArraySection>,
}

enum ResultSource {
    Here(Vec<Incoming>, Order),
    There(RemoteResult),
}

/// State of the arguments of a call.
enum Gathered {
    Here,
    /// The call goes to this host. This many bytes of them are there, or come from other hosts.
    There(WorkerId, u64),
    /// These results have to be fetched first; the first of them has this number.
    Fetch(u64, Vec<Arc<Hold>>),
    /// These calls have to run again.
    Again(Vec<CallId>),
    /// This call has not returned, or not what its interface says.
    Failed(CallId),
    NoMemory(io::Error),
    /// The call has been cancelled.
    Unwanted,
}

/// Results of this many bytes and more are sent without a copy.
const LARGE: usize = 64 << 10;
/// How long one wait for a call that is about to settle may take.
const SOON: Duration = Duration::from_secs(1);

impl KeepAlive for ResultLease {}

impl Common {
    /// Assembles the arguments of calls whose dependencies have ended, and sends the calls.
    pub(crate) fn gather(&self, ready: Vec<(CallId, Arc<Call>)>) {
        let near = |(id, call)| (id, call, true);
        let mut ready: Vec<(CallId, Arc<Call>, bool)> = ready.into_iter().map(near).collect();
        while !ready.is_empty() {
            let put_together = |(id, call, near): (CallId, Arc<Call>, bool)| {
                let gathered = self.put_together(id, &call, near);
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
                        // A host may be gone since then.
                        let waits = state.has_or_reaches(host, &call)
                            && state
                                .drive(|core, out| core.gathered_near(now, id, host, bytes, out));
                        if !waits {
                            ready.push((id, call, true));
                        }
                    }
                    Gathered::Fetch(first, holds) => {
                        // The arguments are assembled when the last result arrives.
                        ready.extend(state.remote_results.wait(first, (id, call)).map(near));
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

    /// `near`: results on hosts may stay there.
    fn put_together(&self, id: CallId, call: &Call, near: bool) -> Gathered {
        let mut all = Vec::new();
        let mut again = Vec::new();
        for (hold, array) in call.needs() {
            let live = || hold.0.id().is_some_and(|id| self.lock().core.payload(id).is_some());
            // The core sees the call end slightly before its callers do.
            while !hold.0.settled(SOON) && !live() {}
            let (here, there) = (hold.0.returned().ok(), hold.0.remote_result());
            let Some(needed) = hold.0.id() else { return Gathered::Unwanted };
            if here.is_none() && there.is_none() {
                if !live() {
                    return Gathered::Failed(needed);
                }
                again.push(needed);
                continue;
            }
            let mut result = NeededResult { hold, here, there, array: None };
            if let Some(array) = array {
                let section = result.section_of(array);
                let Some(section) = section else { return Gathered::Failed(needed) };
                result.array = Some(ArraySection { section, dtype: array.dtype });
            }
            all.push(result);
        }
        if !again.is_empty() {
            return Gathered::Again(again);
        }
        let place = if near { self.place(id, &all) } else { None };
        let mut used = Vec::with_capacity(all.len());
        let mut missing = Vec::new();
        for NeededResult { hold, here, there, array } in all {
            let reaches = |remote: &RemoteResult| {
                // Arrays of the other byte order are converted here.
                (array.is_none() || remote.order == Order::NATIVE)
                    && place.as_ref().is_some_and(|(_, from)| from.contains(&remote.lease.host))
            };
            let from = match (here, there) {
                (_, Some(there)) if reaches(&there) => ResultSource::There(there),
                (Some((here, order)), _) => ResultSource::Here(here, order),
                (None, Some(there)) => {
                    missing.push((there.lease.call, hold));
                    continue;
                }
                (None, None) => return Gathered::Unwanted,
            };
            used.push(Used { from, array });
        }
        if let Some((first, _)) = missing.first() {
            let first = *first;
            return Gathered::Fetch(first, missing.into_iter().map(|(_, hold)| hold).collect());
        }
        let Some(own) = call.take_own_arguments() else { return Gathered::Unwanted };
        let mut payload = self.payload().go_on_with(own);
        if near && used.iter().map(Used::sections_there).sum::<usize>() >= payload.room() {
            call.give_back_arguments(payload.finish());
            return self.put_together(id, call, false);
        }
        if let Err(error) = add_results(&mut payload, &used) {
            return Gathered::NoMemory(error);
        }
        call.complete(payload.finish());
        let bytes = used.iter().map(Used::bytes_there).sum();
        place.map_or(Gathered::Here, |(host, _)| Gathered::There(host, bytes))
    }

    /// Host of a call, and hosts that send it results directly. `None`: the results have
    /// to come here.
    fn place(&self, id: CallId, needed: &[NeededResult]) -> Option<(WorkerId, Vec<WorkerId>)> {
        let bytes = bytes_by_host(needed);
        let (most, _) = *bytes.iter().max_by_key(|(_, sum)| *sum)?;
        let state = self.lock();
        let all = bytes.iter().map(|(_, sum)| sum).sum();
        let to = state.core.place_of_arguments(id, most, all)?;
        let from = bytes.into_iter().map(|(host, _)| host);
        Some((to, from.filter(|from| state.core.reach(*from, to)).collect()))
    }
}

impl NeededResult {
    /// The section of an array. `None`: the result does not match the interface of its function.
    fn section_of(&self, array: ResultArray) -> Option<usize> {
        let (values, order) = match (&self.here, &self.there) {
            (Some((sections, order)), _) => (sections.first()?, *order),
            (None, Some(remote)) => (remote.here(0)?, remote.order),
            (None, None) => return None,
        };
        let values = decode_values(values.bytes(), order).ok()?;
        let Value::Array(found) = values.get(array.parameter)? else { return None };
        let section = usize::from(found.section);
        let len = match (&self.here, &self.there) {
            (Some((sections, _)), _) => sections.get(section)?.len() as u64,
            (None, remote) => remote.as_ref()?.len(section)?,
        };
        (found.dtype == array.dtype && len == array.len).then_some(section)
    }
}

impl Used {
    /// Number of bytes that stay on its host.
    fn bytes_there(&self) -> u64 {
        match &self.from {
            ResultSource::Here(..) => 0,
            ResultSource::There(remote) => remote.bytes(),
        }
    }

    /// Number of sections that may stay on its host.
    fn sections_there(&self) -> usize {
        match &self.from {
            ResultSource::Here(..) => 0,
            ResultSource::There(_) if self.array.is_some() => 1,
            ResultSource::There(remote) => remote.parts.len(),
        }
    }

    /// Number of its sections.
    fn sections(&self) -> usize {
        match &self.from {
            ResultSource::Here(sections, _) => sections.len(),
            ResultSource::There(remote) => remote.parts.len(),
        }
    }
}

/// Number of bytes of the results on each host.
fn bytes_by_host(needed: &[NeededResult]) -> Vec<(WorkerId, u64)> {
    let mut bytes: Vec<(WorkerId, u64)> = Vec::new();
    for remote in needed.iter().filter_map(|needed| needed.there.as_ref()) {
        match bytes.iter_mut().find(|(host, _)| *host == remote.lease.host) {
            Some((_, sum)) => *sum += remote.bytes(),
            None => bytes.push((remote.lease.host, remote.bytes())),
        }
    }
    bytes
}

/// Adds the results to the arguments of the call that needs them: arrays as sections of their own, in this order, and
/// whole results behind them, with a table.
fn add_results(payload: &mut PayloadBuilder<'_>, used: &[Used]) -> io::Result<()> {
    let mut whole = Vec::new();
    for used in used {
        match used.array {
            Some(array) => add_array(payload, &used.from, array)?,
            None => whole.push(used),
        }
    }
    if whole.is_empty() { Ok(()) } else { add_whole(payload, &whole) }
}

fn add_whole(payload: &mut PayloadBuilder<'_>, used: &[&Used]) -> io::Result<()> {
    let counts: Vec<usize> = used.iter().map(|used| used.sections()).collect();
    let mut table = Table::new(&counts);
    for (used, count) in used.iter().zip(counts) {
        table.begin(count);
        match &used.from {
            ResultSource::Here(sections, _) => {
                for section in sections {
                    add_section(payload, &mut table, section)?;
                }
            }
            ResultSource::There(remote) => {
                for (index, part) in remote.parts.iter().enumerate() {
                    match part {
                        RemotePart::Here(section) => add_section(payload, &mut table, section)?,
                        RemotePart::There(len) => {
                            table.refer(payload.sections(), *len as usize);
                            add_remote(payload, remote, index, *len);
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
    if payload.room() > 1 && (payload.passes_on(section) || is_lent(payload, section)) {
        table.refer(payload.sections(), section.len());
        add_as_it_is(payload, section)
    } else {
        table.pack(section.bytes());
        Ok(())
    }
}

fn add_array(
    payload: &mut PayloadBuilder<'_>,
    from: &ResultSource,
    array: ArraySection,
) -> io::Result<()> {
    let ArraySection { section: index, dtype } = array;
    let (section, order) = match from {
        ResultSource::Here(sections, order) => (sections.get(index), *order),
        ResultSource::There(remote) => {
            if let Some(RemotePart::There(len)) = remote.parts.get(index) {
                add_remote(payload, remote, index, *len);
                return Ok(());
            }
            (remote.here(index), remote.order)
        }
    };
    let section = section.ok_or(io::ErrorKind::InvalidData)?;
    if order == Order::NATIVE {
        return add_as_it_is(payload, section);
    }
    payload.add_with(section.len(), |converted| {
        converted.copy_from_slice(section.bytes());
        dtype.swap_bytes(converted);
    })
}

/// Adds a section that has stayed on a host.
fn add_remote(payload: &mut PayloadBuilder<'_>, remote: &RemoteResult, index: usize, len: u64) {
    let RemoteResult { lease, parts, .. } = remote;
    let part = parts[..index].iter().filter(|part| part.is_there()).count() as u32;
    payload.add_remote(
        lease.call,
        index as u16,
        part,
        len,
        Arc::clone(lease) as Arc<dyn KeepAlive>,
    );
}

/// Whether a section is sent without a copy.
fn is_lent(payload: &PayloadBuilder<'_>, section: &Incoming) -> bool {
    !payload.has_shared_memory() && section.len() >= LARGE
}

fn add_as_it_is(payload: &mut PayloadBuilder<'_>, section: &Incoming) -> io::Result<()> {
    if !is_lent(payload, section) {
        return payload.pass_on(section);
    }
    payload.add_source(Arc::new(Source::held(section.clone())));
    Ok(())
}
