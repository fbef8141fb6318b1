//! Shared memory of this client that a daemon of this machine uses.

use std::collections::{HashMap, HashSet};
use std::os::fd::AsFd;
use std::sync::Arc;

use gridrpc_link::payload::{Outgoing, Payload};
use gridrpc_link::{Outbound, Push};
use gridrpc_shm::segment::Segment;
use gridrpc_wire::{MAX_DAEMON_SEGMENTS, Message, WireError};

/// Segments that a daemon knows, and calls whose arguments lie there.
#[derive(Debug, Default)]
pub(crate) struct HostMemory {
    known: HashSet<u32>,
    lent: HashMap<u64, Arc<Payload>>,
}

impl HostMemory {
    /// Announces the segments of a call's arguments. Returns whether the daemon can use all of them; otherwise the
    /// arguments are streamed.
    ///
    /// # Errors
    /// Never, as the messages are small.
    pub(crate) fn lend(
        &mut self,
        call: u64,
        payload: &Arc<Payload>,
        to: &Outbound,
    ) -> Result<bool, WireError> {
        let mut new: Vec<&Segment> = Vec::new();
        let mut is_lent = false;
        for part in &payload.parts {
            match part {
                Outgoing::Shared { lent, .. } => {
                    is_lent = true;
                    let number = lent.segment().number();
                    if !self.known.contains(&number)
                        && new.iter().all(|segment| segment.number() != number)
                    {
                        new.push(lent.segment());
                    }
                }
                // A worker's memory.
                Outgoing::Passed(_) => return Ok(false),
                _ => {}
            }
        }
        if self.known.len() + new.len() > MAX_DAEMON_SEGMENTS {
            self.drop_unused(payload, to)?;
            if self.known.len() + new.len() > MAX_DAEMON_SEGMENTS {
                return Ok(false);
            }
        }
        let seal = |segment: &&Segment| gridrpc_sys::seal_for_strangers(segment.file().as_fd());
        if !new.iter().all(|segment| seal(segment).is_ok()) {
            return Ok(false);
        }
        let mut to = to.pushing();
        for segment in new {
            self.known.insert(segment.number());
            let message = Message::Segment { segment: segment.number(), len: segment.len() };
            to.push_with(&message, vec![segment.file()])?;
        }
        if is_lent {
            self.lent.insert(call, Arc::clone(payload));
        }
        Ok(true)
    }

    /// Makes the daemon forget segments that neither its calls nor `next` use: those of results that the program keeps,
    /// and free ones.
    fn drop_unused(&mut self, next: &Arc<Payload>, to: &Outbound) -> Result<(), WireError> {
        let used: HashSet<u32> = self.lent.values().chain([next]).flat_map(segments).collect();
        let known = std::mem::take(&mut self.known);
        let (used, unused): (Vec<u32>, Vec<u32>) =
            known.into_iter().partition(|one| used.contains(one));
        self.known.extend(used);
        unused.into_iter().try_for_each(|segment| to.push(&Message::DropSegment { segment }))
    }

    /// Records that the daemon no longer uses the arguments of a call.
    pub(crate) fn answered(&mut self, call: u64) {
        self.lent.remove(&call);
    }

    /// Announces a dropped segment if the daemon knows it. Returns whether it does.
    ///
    /// # Errors
    /// Never, as the message is small.
    pub(crate) fn drop_segment(&mut self, segment: u32, to: &Outbound) -> Result<bool, WireError> {
        let is_known = self.known.remove(&segment);
        if is_known {
            to.push(&Message::DropSegment { segment })?;
        }
        Ok(is_known)
    }
}

/// The segments where sections of a payload lie.
fn segments(payload: &Arc<Payload>) -> impl Iterator<Item = u32> + '_ {
    payload.parts.iter().filter_map(|part| match part {
        Outgoing::Shared { lent, .. } => Some(lent.segment().number()),
        _ => None,
    })
}

impl Drop for HostMemory {
    /// The daemon is gone, and its workers may write to the memory for a moment: nothing else may use it.
    fn drop(&mut self) {
        for part in self.lent.values().flat_map(|payload| &payload.parts) {
            if let Outgoing::Shared { lent, .. } = part {
                lent.spend();
            }
        }
    }
}
