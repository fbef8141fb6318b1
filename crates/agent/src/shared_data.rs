//! Shared data that has arrived or is arriving, and how much of it.

use std::collections::HashMap;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gridrpc_client::SharedData;
use gridrpc_link::buffers::{PinnedBytes, Sink, Source};
use gridrpc_shm::segment::Pool;

/// Shared data, and the part of it that has been written.
#[derive(Debug)]
pub(super) struct PartialData {
    data: Arc<SharedData>,
    /// Where its parts are received; none: all of it has arrived.
    sinks: Vec<Arc<Sink>>,
    given_up: AtomicBool,
}

impl PartialData {
    /// Allocates memory for parts of these lengths.
    pub(super) fn begin(lengths: &[usize], pool: &Arc<Pool>) -> io::Result<PartialData> {
        let data = SharedData::to_be_filled(lengths, pool)?;
        let sinks = data.sinks();
        Ok(PartialData { data: Arc::new(data), sinks, given_up: AtomicBool::new(false) })
    }

    /// Data that has fully arrived.
    pub(super) fn whole(data: SharedData) -> PartialData {
        let (data, sinks) = (Arc::new(data), Vec::new());
        PartialData { data, sinks, given_up: AtomicBool::new(false) }
    }

    pub(super) fn data(&self) -> &Arc<SharedData> {
        &self.data
    }

    pub(super) fn sinks(&self) -> &[Arc<Sink>] {
        &self.sinks
    }

    /// The lengths of its parts, bytes.
    pub(super) fn lengths(&self) -> Vec<usize> {
        (0..self.data.parts()).map(|part| self.data.part(part).len()).collect()
    }

    /// The available bytes of a part from an offset, up to `most`. None at the end of the part.
    pub(super) fn piece(&self, part: usize, from: usize, most: usize) -> Option<Range<usize>> {
        let len = self.data.part(part).len();
        let come = self.sinks.get(part).map_or(len, |sink| sink.filled());
        (from < len).then(|| from..come.min(from + most).max(from))
    }

    /// A range of a part that has arrived, to be sent.
    pub(super) fn source(&self, part: usize, range: Range<usize>) -> Source {
        Source::held(DataRange { data: Arc::clone(&self.data), part, range })
    }

    /// Whether the rest of it will not arrive.
    pub(super) fn is_given_up(&self) -> bool {
        self.given_up.load(Ordering::Acquire)
    }
}

/// A range of shared data in transit to another host.
#[derive(Debug)]
struct DataRange {
    data: Arc<SharedData>,
    part: usize,
    range: Range<usize>,
}

impl PinnedBytes for DataRange {
    fn bytes(&self) -> &[u8] {
        &self.data.part(self.part)[self.range.clone()]
    }
}

#[derive(Debug, Default)]
struct Table {
    known: HashMap<u64, Arc<PartialData>>,
    /// Data that has fully arrived and is not yet shared with the workers.
    arrived: Vec<u64>,
}

/// All shared data of an agent.
#[derive(Clone, Debug, Default)]
pub(super) struct SharedDataTable(Arc<(Mutex<Table>, Condvar)>);

impl SharedDataTable {
    fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers data that begins to arrive. None if it is already present or in transit: the new copy is not
    /// needed.
    pub(super) fn add(&self, blob: u64, filling: PartialData) -> Option<Arc<PartialData>> {
        let mut table = self.lock();
        let known = table.known.get(&blob).filter(|known| !known.is_given_up());
        if known.is_some() {
            return None;
        }
        let filling = Arc::new(filling);
        table.known.insert(blob, Arc::clone(&filling));
        self.0.1.notify_all();
        Some(filling)
    }

    /// The data, if it is present or in transit.
    pub(super) fn get(&self, blob: u64) -> Option<Arc<PartialData>> {
        self.lock().known.get(&blob).cloned()
    }

    /// Waits up to `timeout` for the data to begin to arrive.
    pub(super) fn wait_for(&self, blob: u64, timeout: Duration) -> Option<Arc<PartialData>> {
        let table = self.lock();
        let lacks = |table: &mut Table| !table.known.contains_key(&blob);
        let waited = self.0.1.wait_timeout_while(table, timeout, lacks);
        let table = waited.unwrap_or_else(PoisonError::into_inner).0;
        table.known.get(&blob).cloned()
    }

    /// Marks data as fully arrived.
    pub(super) fn complete(&self, blob: u64) {
        self.lock().arrived.push(blob);
    }

    /// Marks data whose rest will not arrive.
    pub(super) fn give_up(&self, blob: u64) {
        if let Some(known) = self.get(blob) {
            known.given_up.store(true, Ordering::Release);
        }
    }

    /// Forgets data that is no longer needed.
    pub(super) fn forget(&self, blob: u64) {
        self.lock().known.remove(&blob);
    }

    /// Data that has fully arrived since the last call.
    pub(super) fn take_arrived(&self) -> Vec<(u64, Arc<PartialData>)> {
        let mut table = self.lock();
        let arrived = std::mem::take(&mut table.arrived);
        let known = |blob: u64| Some((blob, Arc::clone(table.known.get(&blob)?)));
        arrived.into_iter().filter_map(known).collect()
    }
}
