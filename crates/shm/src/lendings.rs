//! What a worker has lent to its client: results and arguments of callbacks, until it is read no more.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use gridrpc_sys::Mapping;
use gridrpc_wire::Lease;

use crate::progress;
use crate::segment::Lent;

/// Of the descriptors that this process may have, those of memory that is lent are at most one part in so
/// many: the others are for what functions open.
const PART: u64 = 4;

/// The memory that is lent, by lease.
#[derive(Debug)]
pub struct Lendings {
    lent: Mutex<HashMap<Lease, Arc<Lent>>>,
    /// Where the client marks what it has given back, and this worker's number there.
    marks: progress::WorkerProgress,
}

impl Lendings {
    /// None yet. `progress`: where the client marks what it has read.
    pub fn new(progress: &Arc<Mapping>, worker: u32) -> Lendings {
        Lendings { lent: Mutex::default(), marks: (Arc::clone(progress), worker) }
    }

    fn lent(&self) -> MutexGuard<'_, HashMap<Lease, Arc<Lent>>> {
        self.lent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether so much is lent that results are rather sent: each stretch has a descriptor here.
    pub fn are_many(&self) -> bool {
        static MOST: OnceLock<u64> = OnceLock::new();
        let most = *MOST.get_or_init(|| gridrpc_sys::raise_file_limit() / PART);
        self.lent().len() as u64 >= most
    }

    /// The client reads it from now on.
    pub fn add(&self, lease: Lease, lent: Arc<Lent>) {
        self.lent().insert(lease, lent);
    }

    /// The client has given these back.
    pub fn end(&self, leases: &[Lease]) {
        let mut lent = self.lent();
        for lease in leases {
            lent.remove(lease);
        }
    }

    /// Takes what the client has marked since the last time.
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
    use crate::progress::GivingBack;
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
        let giving = GivingBack::new(&progress, 5);
        assert_eq!((lend(), lend()), (0, 1), "nothing has come back");
        assert!(giving.mark(0));
        assert_eq!((lend(), lend()), (0, 2));
        // What was never lent is nobody's.
        assert!(giving.mark(77));
        assert_eq!(lend(), 3);
    }
}
