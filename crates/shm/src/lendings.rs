//! Memory that a worker has lent to its client: results and arguments of callbacks, until the client no longer reads
//! them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use gridrpc_sys::Mapping;
use gridrpc_wire::Lease;

use crate::progress;
use crate::segment::PooledSegment;

/// Share of this process's descriptors that lent memory may use, as a divisor. The others are for functions.
const PART: u64 = 4;

/// The lent memory, by lease.
#[derive(Debug)]
pub struct Lendings {
    lent: Mutex<HashMap<Lease, Arc<PooledSegment>>>,
    /// Where the client marks returned segments, and this worker's number there.
    marks: progress::WorkerProgress,
}

impl Lendings {
    /// Creates an empty set. `progress`: where the client marks returned segments.
    pub fn new(progress: &Arc<Mapping>, worker: u32) -> Lendings {
        Lendings { lent: Mutex::default(), marks: (Arc::clone(progress), worker) }
    }

    fn lent(&self) -> MutexGuard<'_, HashMap<Lease, Arc<PooledSegment>>> {
        self.lent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether so much is lent that results should be sent instead: each stretch takes a descriptor.
    pub fn are_many(&self) -> bool {
        static MOST: OnceLock<u64> = OnceLock::new();
        let most = *MOST.get_or_init(|| gridrpc_sys::raise_file_limit() / PART);
        self.lent().len() as u64 >= most
    }

    /// Records memory that the client reads from now on.
    pub fn add(&self, lease: Lease, lent: Arc<PooledSegment>) {
        self.lent().insert(lease, lent);
    }

    /// Ends leases that the client has returned.
    pub fn end(&self, leases: &[Lease]) {
        let mut lent = self.lent();
        for lease in leases {
            lent.remove(lease);
        }
    }

    /// Ends leases that the client has marked since the last call.
    pub fn end_marked(&self) {
        let (progress, worker) = &self.marks;
        for segment in progress::take_given_back(progress, *worker) {
            self.lent().remove(&Lease { segment, offset: 0 });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;
    use crate::progress::ReturnMarks;
    use crate::segment::Pool;
    use gridrpc_sys::memory_file;

    #[test]
    fn what_the_client_marks_is_used_again() {
        let file = memory_file(c"test", 4096).unwrap();
        let progress = Arc::new(Mapping::new(file.as_fd(), 4096, true).unwrap());
        let lendings = Lendings::new(&progress, 5);
        let pool = Pool::new(1 << 30);
        let lend = || {
            lendings.end_marked();
            let lent = Arc::new(pool.take(100_000).unwrap());
            let segment = lent.segment().number();
            lendings.add(Lease { segment, offset: 0 }, lent);
            segment
        };
        let giving = ReturnMarks::new(&progress, 5);
        assert_eq!((lend(), lend()), (0, 1), "nothing has come back");
        assert!(giving.mark(0));
        assert_eq!((lend(), lend()), (0, 2));
        // A mark without a lease is ignored.
        assert!(giving.mark(77));
        assert_eq!(lend(), 3);
    }
}
