//! Shared data: given once, present once on this machine however many workers read it.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, OnceLock};

use nix::errno::Errno;
use nix::sys::uio::pread;

use gridrpc_wire::{Lease, Place, Section, Sections};

use crate::loan::Source;
use crate::pages::{HUGE, HUGE_FROM, Memory};
use crate::sys;

const NAME: &CStr = c"gridrpc-shared";
/// Parts start at multiples of this, so that arrays of any type lie well.
const ALIGNMENT: u64 = 64;

/// Data in memory that its readers map.
#[derive(Debug)]
pub struct SharedData {
    file: Arc<OwnedFd>,
    /// Offset and length of each part.
    parts: Vec<(u64, u64)>,
    hash: OnceLock<blake3::Hash>,
    /// Copies of the parts, made when a connection needs them that memory cannot cross.
    streams: OnceLock<Vec<Arc<Source>>>,
}

impl SharedData {
    /// Copies the parts into new memory, which nobody can change from then on.
    ///
    /// # Errors
    /// When there is no memory for them.
    pub fn new(parts: &[&[u8]]) -> io::Result<SharedData> {
        let mut placed = Vec::with_capacity(parts.len());
        let mut end = 0_u64;
        for part in parts {
            placed.push((end, part.len() as u64));
            end = (end + part.len() as u64).next_multiple_of(ALIGNMENT);
        }
        // Its last page is a huge one too if it is worth it.
        let whole = if end > HUGE_FROM { end.next_multiple_of(HUGE as u64) } else { end.max(1) };
        let memory = Memory::new(sys::memory_file(NAME, whole)?, whole as usize);
        for (part, (offset, _)) in parts.iter().zip(&placed) {
            memory.write(*offset as usize, part)?;
        }
        let file = memory.file();
        // What is mapped for writing cannot be sealed.
        drop(memory);
        sys::seal(file.as_fd())?;
        let (hash, streams) = (OnceLock::new(), OnceLock::new());
        Ok(SharedData { file, parts: placed, hash, streams })
    }

    /// Whether it consists of parts of these lengths.
    #[must_use]
    pub fn has_lengths(&self, parts: &[&[u8]]) -> bool {
        let lengths = parts.iter().map(|part| part.len() as u64);
        self.parts.iter().map(|(_, len)| *len).eq(lengths)
    }

    /// The name of its content. Computed when something is shared that might be the same:
    /// a pass over the data is a third of the time that sharing it takes.
    pub fn hash(&self) -> blake3::Hash {
        *self.hash.get_or_init(|| {
            let parts: Vec<Vec<u8>> =
                self.parts.iter().map(|&(offset, len)| self.read(offset, len)).collect();
            hash(&parts.iter().map(Vec::as_slice).collect::<Vec<_>>())
        })
    }

    /// Its length, bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.parts.iter().map(|(_, len)| len).sum()
    }

    pub(crate) fn file(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.file)
    }

    pub(crate) fn sections(&self, shared_memory: bool) -> Sections<'static> {
        let place = |offset| {
            if shared_memory { Place::Shared(Lease { segment: 0, offset }) } else { Place::Stream }
        };
        self.parts.iter().map(|&(offset, len)| Section { len, place: place(offset) }).collect()
    }

    /// Copies of the parts, for connections that descriptors cannot cross.
    pub(crate) fn streams(&self) -> &[Arc<Source>] {
        self.streams.get_or_init(|| {
            let source = |&(offset, len)| Arc::new(Source::owned(self.read(offset, len)));
            self.parts.iter().map(source).collect()
        })
    }

    fn read(&self, offset: u64, len: u64) -> Vec<u8> {
        let mut bytes = vec![0; len as usize];
        let mut done = 0;
        while done < bytes.len() {
            match pread(&*self.file, &mut bytes[done..], offset as i64 + done as i64) {
                Ok(count) if count > 0 => done += count,
                Err(Errno::EINTR) => {}
                // Memory that was written and sealed can be read.
                _ => break,
            }
        }
        bytes
    }
}

/// Names the parts: their lengths first, so that no two divisions of the same bytes are equal.
pub fn hash(parts: &[&[u8]]) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes());
    }
    for part in parts {
        hasher.update(part);
    }
    hasher.finalize()
}
