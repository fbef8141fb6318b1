//! Outcome and timestamps of a call.

use std::sync::Arc;

use gridrpc_core::End;
use gridrpc_link::payload::Incoming;
use gridrpc_wire::{Order, Stamps};

/// A call has no result, or the result is gone.
#[derive(Debug)]
pub(crate) struct Missing;

/// Results below this size are copied into memory of their exact size, bytes.
const SMALL: usize = 4096;

/// Outcome of a call.
#[derive(Debug)]
pub enum Outcome {
    /// The function has returned these sections, whose numbers have this byte order.
    Returned(Vec<Incoming>, Order),
    /// The function has raised an error.
    Raised {
        /// Type of the error; the protocol's own start with `gridrpc.`.
        error: String,
        /// Its message.
        message: String,
        /// Where it was raised, in readable form.
        trace: String,
        /// The pickled error, if it could be pickled.
        sections: Vec<Incoming>,
        /// The byte order of the numbers in its sections.
        order: Order,
    },
    /// The call ended without an answer.
    Ended(End),
}

impl Outcome {
    /// Number of bytes received with it.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Outcome::Returned(sections, _) | Outcome::Raised { sections, .. } => {
                sections.iter().map(moved).sum()
            }
            Outcome::Ended(_) => 0,
        }
    }
}

/// Times and places of a call. Times are ns on this host's monotonic clock; 0: not reached.
#[derive(Clone, Copy, Debug, Default)]
pub struct Profile {
    /// The caller submitted it.
    pub submit: u64,
    /// It was sent to a worker.
    pub sent: u64,
    /// The function started and returned.
    pub stamps: Stamps,
    /// The result arrived.
    pub retrieve: u64,
    /// The worker's number; `u32::MAX`: none.
    pub worker: u32,
    /// The worker's process id.
    pub pid: u32,
    /// Payload bytes sent.
    pub bytes_in: u64,
    /// Payload bytes that came back.
    pub bytes_out: u64,
    /// Maximum error of the stamps, which come from another host's clock.
    pub clock_error: u64,
}

/// An outcome that waits to be taken. There may be a million, nearly all of them small results.
#[derive(Debug)]
pub(super) enum StoredOutcome {
    /// One returned section, received as bytes, in this machine's byte order.
    Small(Box<[u8]>),
    Other(Box<Outcome>),
}

impl StoredOutcome {
    pub(super) fn keep(outcome: Outcome) -> StoredOutcome {
        match outcome {
            Outcome::Returned(mut sections, Order::NATIVE) if matches!(&sections[..], [Incoming::Bytes(bytes)] if bytes.len() < SMALL) => {
                match sections.pop() {
                    Some(Incoming::Bytes(bytes)) => StoredOutcome::Small(bytes.into_boxed_slice()),
                    other => {
                        let sections = other.into_iter().collect();
                        StoredOutcome::Other(Box::new(Outcome::Returned(sections, Order::NATIVE)))
                    }
                }
            }
            other => StoredOutcome::Other(Box::new(other)),
        }
    }

    /// The sections of a result, and their byte order. Large sections are shared, not copied.
    pub(super) fn returned(&mut self) -> Option<(Vec<Incoming>, Order)> {
        match self {
            StoredOutcome::Small(bytes) => {
                Some((vec![Incoming::Bytes(bytes.to_vec())], Order::NATIVE))
            }
            StoredOutcome::Other(outcome) => match &mut **outcome {
                Outcome::Returned(sections, order) => {
                    for section in sections.iter_mut() {
                        if let Incoming::Bytes(bytes) = section
                            && bytes.len() >= SMALL
                        {
                            *section = Incoming::Kept(Arc::new(std::mem::take(bytes)));
                        }
                    }
                    Some((sections.clone(), *order))
                }
                _ => None,
            },
        }
    }

    /// Whether it is a small pickle whose other parts lie in shared memory. They stay there as long as the objects
    /// made of them, and can be passed on.
    pub(super) fn lies_in_shared_memory(&self) -> bool {
        let StoredOutcome::Other(outcome) = self else { return false };
        let Outcome::Returned(sections, _) = &**outcome else { return false };
        matches!(&sections[..], [Incoming::Bytes(_), rest @ ..]
            if rest.iter().any(|section| matches!(section, Incoming::Shared(_))))
    }

    pub(super) fn take(self) -> Outcome {
        match self {
            StoredOutcome::Small(bytes) => {
                Outcome::Returned(vec![Incoming::Bytes(bytes.into_vec())], Order::NATIVE)
            }
            StoredOutcome::Other(outcome) => match *outcome {
                Outcome::Returned(sections, order) => {
                    Outcome::Returned(sections.into_iter().map(taken).collect(), order)
                }
                other => other,
            },
        }
    }
}

/// A section that the caller may modify.
fn taken(section: Incoming) -> Incoming {
    match section {
        Incoming::Kept(bytes) => Incoming::Bytes(Arc::unwrap_or_clone(bytes)),
        other => other,
    }
}

/// Number of bytes of a section that were transferred. Data that the worker wrote into the caller's own memory does
/// not count.
pub(crate) fn moved(section: &Incoming) -> u64 {
    match section {
        Incoming::Argument(..) | Incoming::Left(_) => 0,
        other => other.len() as u64,
    }
}
