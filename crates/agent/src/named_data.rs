//! Data that a daemon keeps under a name, in the memory of its grids, for calls of any of its clients.

use std::io;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use gridrpc_client::{Grid, SharedData};
use gridrpc_core::BlobId;

/// Named data in memory. It leaves the grids when it is dropped, and its number is not used again.
#[derive(Debug)]
pub struct NamedData {
    grid: Arc<Grid>,
    blob: BlobId,
    data: Arc<SharedData>,
    /// Grids of offered functions that have copies.
    copies: Mutex<Vec<Weak<Grid>>>,
}

impl NamedData {
    /// Copies the parts into memory that the workers of a grid share.
    ///
    /// # Errors
    /// When there is no memory for them.
    pub fn new(grid: &Arc<Grid>, blob: BlobId, parts: &[&[u8]]) -> io::Result<NamedData> {
        let data = Arc::new(SharedData::new(parts, grid.shared_pool())?);
        grid.share_as(blob, Arc::clone(&data));
        Ok(NamedData { grid: Arc::clone(grid), blob, data, copies: Mutex::default() })
    }

    /// Copies it to the grid of an offered function, once for all clients.
    pub(super) fn copy_to(&self, grid: &Arc<Grid>) -> io::Result<()> {
        let mut copies = self.copies.lock().unwrap_or_else(PoisonError::into_inner);
        copies.retain(|known| known.strong_count() > 0);
        if copies.iter().any(|known| std::ptr::eq(known.as_ptr(), Arc::as_ptr(grid))) {
            return Ok(());
        }
        grid.share_as(self.blob, Arc::new(self.data.copy_to(grid.shared_pool())?));
        copies.push(Arc::downgrade(grid));
        Ok(())
    }
}

impl Drop for NamedData {
    fn drop(&mut self) {
        self.grid.unshare_named(self.blob);
        let copies = self.copies.get_mut().unwrap_or_else(PoisonError::into_inner);
        for grid in copies.iter().filter_map(Weak::upgrade) {
            grid.unshare_named(self.blob);
        }
    }
}
