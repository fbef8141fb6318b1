//! Shared memory of a client of this machine: its segments, and the sections of calls that lie there.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use gridrpc_link::LinkError;
use gridrpc_link::payload::{Incoming, PayloadBuilder};
use gridrpc_shm::foreign::ForeignSegment;
use gridrpc_shm::segment::{Held, InPlaceResult, Pool, PooledSegment};
use gridrpc_sys::memory;
use gridrpc_wire::{Lease, MAX_DAEMON_SEGMENTS, RemoteError};

use crate::service::Denied;

/// Maximum number of segments of a user, over all connections. Each takes a descriptor of the server.
const MOST_OF_USER: u64 = 2048;

/// Segments of one user, over all connections.
#[derive(Debug)]
pub(super) struct UserMemory {
    user: Arc<str>,
    segments: AtomicU64,
    bytes: AtomicU64,
}

impl UserMemory {
    pub(super) fn new(user: &Arc<str>) -> UserMemory {
        UserMemory { user: Arc::clone(user), segments: AtomicU64::new(0), bytes: AtomicU64::new(0) }
    }

    /// Counts a segment, unless the user has too many.
    fn count(self: &Arc<UserMemory>, len: u64) -> Result<Counted, Denied> {
        let counted = Counted { of: Arc::clone(self), len };
        let segments = self.segments.fetch_add(1, Ordering::Relaxed) + 1;
        let bytes = self.bytes.fetch_add(len, Ordering::Relaxed).saturating_add(len);
        let user = &self.user;
        let message = if segments > MOST_OF_USER {
            format!(
                "user `{user}` has {MOST_OF_USER} segments of shared memory here already: close connections, or keep \
                 fewer calls with large arguments in flight"
            )
        } else if bytes > memory::most() {
            let most = memory::most();
            format!("the shared memory of user `{user}` has {bytes} bytes, of at most {most} here")
        } else {
            return Ok(counted);
        };
        Err(Denied { error: RemoteError::LimitReached.name().to_owned(), message })
    }
}

/// A segment that counts for its user, until it is dropped.
#[derive(Debug)]
struct Counted {
    of: Arc<UserMemory>,
    len: u64,
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.of.segments.fetch_sub(1, Ordering::Relaxed);
        self.of.bytes.fetch_sub(self.len, Ordering::Relaxed);
    }
}

/// A segment of the client.
#[derive(Debug)]
pub(super) struct ClientSegment {
    memory: ForeignSegment,
    _counted: Counted,
}

/// The segments of one connection.
#[derive(Debug, Default)]
pub(super) struct ClientSegments {
    /// None: the client can share no memory.
    user: Option<Arc<UserMemory>>,
    known: HashMap<u32, Result<Arc<ClientSegment>, Denied>>,
}

impl ClientSegments {
    /// Accepts segments from now on.
    pub(super) fn accept(&mut self, user: Arc<UserMemory>) {
        self.user = Some(user);
    }

    /// Takes a segment that the client announces. `file`: none if this process may have no more descriptors.
    ///
    /// # Errors
    /// When the client breaks the rules.
    pub(super) fn add(
        &mut self,
        number: u32,
        len: u64,
        mut files: Vec<OwnedFd>,
    ) -> Result<(), LinkError> {
        let unexpected = |what: String| LinkError::Unexpected(what);
        let user = self.user.as_ref();
        let user =
            user.ok_or_else(|| unexpected("shared memory over this connection".to_owned()))?;
        if files.len() > 1 {
            return Err(unexpected(format!("a segment with {} descriptors", files.len())));
        }
        if self.known.len() >= MAX_DAEMON_SEGMENTS {
            return Err(unexpected(format!("more than {MAX_DAEMON_SEGMENTS} segments at a time")));
        }
        if self.known.contains_key(&number) {
            return Err(unexpected(format!("segment {number}, which is there already")));
        }
        let segment = match files.pop() {
            None => Err(Denied {
                error: RemoteError::OutOfMemory.name().to_owned(),
                message: "the server has no descriptor left for its shared memory; try again"
                    .to_owned(),
            }),
            Some(file) => {
                let memory = ForeignSegment::new(file, len)?;
                let segment = |counted| Arc::new(ClientSegment { memory, _counted: counted });
                user.count(len).map(segment)
            }
        };
        self.known.insert(number, segment);
        Ok(())
    }

    /// Forgets a segment. Calls that use it keep it.
    pub(super) fn remove(&mut self, number: u32) {
        self.known.remove(&number);
    }

    /// Forgets all segments.
    pub(super) fn clear(&mut self) {
        self.known.clear();
    }

    /// The segment of a lease, if `len` bytes of it lie there.
    pub(super) fn find(&self, lease: Lease, len: u64) -> Result<Arc<ClientSegment>, FindError> {
        let Lease { segment, offset } = lease;
        let found = self.known.get(&segment).ok_or(FindError::Outside)?;
        let found = found.as_ref().map_err(|denied| FindError::Denied(denied.clone()))?;
        if !found.memory.has(offset, len) {
            return Err(FindError::Outside);
        }
        Ok(Arc::clone(found))
    }
}

/// Why there is no memory for a section.
#[derive(Debug)]
pub(super) enum FindError {
    /// The server did not take its segment.
    Denied(Denied),
    /// It lies outside all segments.
    Outside,
}

/// Where a section of a call lies in shared memory.
#[derive(Debug)]
pub(super) enum ArgumentPlace {
    /// In memory of this process.
    Here(Arc<PooledSegment>),
    /// In the client's memory, which the workers use.
    AtClient { segment: Arc<ClientSegment>, offset: u64, len: u64 },
    /// In memory of this process, copied from the client's.
    Copied { lent: Arc<PooledSegment>, segment: Arc<ClientSegment>, offset: u64, len: u64 },
}

impl ArgumentPlace {
    /// Adds a section in the client's memory to a payload. `call`: the workers may use that memory, until this is
    /// dropped; none: they get a copy.
    pub(super) fn add(
        segment: Arc<ClientSegment>,
        offset: u64,
        len: u64,
        call: Option<Arc<dyn Held>>,
        pool: &Arc<Pool>,
        payload: &mut PayloadBuilder<'_>,
    ) -> io::Result<ArgumentPlace> {
        if let Some(call) = call {
            payload.add_shared(Arc::new(segment.memory.lend(pool, call)), offset, len, len);
            return Ok(ArgumentPlace::AtClient { segment, offset, len });
        }
        let lent = Arc::new(pool.take(len)?);
        segment.memory.copy_to(offset, len, &lent)?;
        payload.add_shared(Arc::clone(&lent), 0, len, len);
        Ok(ArgumentPlace::Copied { lent, segment, offset, len })
    }

    /// The result of `len` bytes that a worker has left here as section number `index` of its call.
    ///
    /// # Errors
    /// When it is longer than the section, or cannot be mapped.
    pub(super) fn result(&self, index: u16, len: u64) -> io::Result<Incoming> {
        match self {
            ArgumentPlace::Here(lent) => Ok(Incoming::Left(InPlaceResult::new(lent, 0, len)?)),
            ArgumentPlace::AtClient { len: most, .. } | ArgumentPlace::Copied { len: most, .. }
                if len > *most =>
            {
                Err(io::ErrorKind::InvalidInput.into())
            }
            ArgumentPlace::AtClient { .. } => Ok(Incoming::Argument(index, len)),
            ArgumentPlace::Copied { lent, segment, offset, .. } => {
                segment.memory.write(*offset, InPlaceResult::new(lent, 0, len)?.bytes())?;
                Ok(Incoming::Argument(index, len))
            }
        }
    }
}

impl ArgumentPlace {
    /// The same for a call whose client may be gone: nothing of it stays in the client's memory.
    ///
    /// # Errors
    /// When it is longer than the section, or there is no memory for it.
    pub(super) fn kept_result(&self, len: u64, pool: &Arc<Pool>) -> io::Result<Incoming> {
        let lent = match self {
            ArgumentPlace::Here(lent) => Arc::clone(lent),
            ArgumentPlace::AtClient { len: most, .. } | ArgumentPlace::Copied { len: most, .. }
                if len > *most =>
            {
                return Err(io::ErrorKind::InvalidInput.into());
            }
            ArgumentPlace::Copied { lent, .. } => Arc::clone(lent),
            ArgumentPlace::AtClient { segment, offset, .. } => {
                let lent = Arc::new(pool.take(len)?);
                segment.memory.copy_to(*offset, len, &lent)?;
                lent
            }
        };
        Ok(Incoming::Left(InPlaceResult::new(&lent, 0, len)?))
    }
}

/// Use of a client's memory by a call. The call is answered when no worker uses the memory any more: the client then
/// uses it for something else.
#[derive(Default)]
pub(super) struct MemoryInUse(Mutex<Option<Box<dyn FnOnce() + Send>>>);

impl MemoryInUse {
    /// Calls `answer` when this is dropped.
    pub(super) fn answer_at_end(&self, answer: Box<dyn FnOnce() + Send>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(answer);
    }
}

impl fmt::Debug for MemoryInUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MemoryInUse")
    }
}

impl Held for MemoryInUse {}

impl Drop for MemoryInUse {
    fn drop(&mut self) {
        let answer = self.0.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(answer) = answer {
            answer();
        }
    }
}
