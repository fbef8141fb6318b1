//! Segments of one process that another one passes on to a third: results of a worker that are arguments of a call on
//! another. The file is sent along, under a number of the process that passes it on.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use crate::segment::Pool;

/// First number of passed-on segments: above those of all others. As with the caller's own arrays, only their owner
/// may write to them.
pub const FIRST_OF_PASSED_ON: u32 = 3 << 30;

/// Share of this process's descriptors that may be kept for passing on, as a divisor.
const PART: u64 = 4;

/// Number of files kept, by all grids of this process.
static KEPT: AtomicU64 = AtomicU64::new(0);

/// Data needed to pass a segment on: its file.
#[derive(Debug)]
pub struct ForwardableSegment {
    file: Arc<OwnedFd>,
    len: u64,
    number: OnceLock<u32>,
    /// Notified when the segment is gone, so that its readers are notified too.
    pool: Weak<Pool>,
}

impl ForwardableSegment {
    /// Keeps a file, unless there are too many.
    pub fn keep(file: OwnedFd, len: u64, pool: &Arc<Pool>) -> Option<ForwardableSegment> {
        static MOST: OnceLock<u64> = OnceLock::new();
        let most = *MOST.get_or_init(|| gridrpc_sys::raise_file_limit() / PART);
        if KEPT.fetch_add(1, Ordering::Relaxed) >= most {
            KEPT.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        let (file, pool) = (gridrpc_sys::beyond_select(file), Arc::downgrade(pool));
        Some(ForwardableSegment { file: Arc::new(file), len, number: OnceLock::new(), pool })
    }

    /// Its number for the readers that it is passed on to.
    pub fn number(&self) -> u32 {
        static NEXT: AtomicU32 = AtomicU32::new(FIRST_OF_PASSED_ON);
        // When all numbers have been used, the first ones are long obsolete.
        *self.number.get_or_init(|| NEXT.fetch_add(1, Ordering::Relaxed) | FIRST_OF_PASSED_ON)
    }

    /// Length of its segment, bytes.
    #[allow(clippy::len_without_is_empty)] // it never is
    pub fn len(&self) -> u64 {
        self.len
    }

    /// The file to pass.
    pub fn file(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.file)
    }
}

impl Drop for ForwardableSegment {
    fn drop(&mut self) {
        KEPT.fetch_sub(1, Ordering::Relaxed);
        if let (Some(number), Some(pool)) = (self.number.get(), self.pool.upgrade()) {
            pool.others_gone(&[*number]);
        }
    }
}
