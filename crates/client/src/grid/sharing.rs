//! Data shared with all workers of a grid.

use std::sync::{Arc, PoisonError};

use gridrpc_core::BlobId;
use gridrpc_wire::MAX_SECTIONS;

use crate::error::GridError;
use crate::grid::Grid;
use crate::shared::{Owned, SharedData, hash};

impl Grid {
    /// Shares data, in parts. Equal data is shared only once.
    ///
    /// # Errors
    /// When there are too many parts or no memory for them.
    pub fn share(&self, parts: &[&[u8]]) -> Result<BlobId, GridError> {
        self.check_process()?;
        if parts.len() > MAX_SECTIONS {
            let most = MAX_SECTIONS;
            return Err(GridError::Config(format!("shared data of more than {most} parts")));
        }
        let mut owned = self.owned.lock().unwrap_or_else(PoisonError::into_inner);
        let is_alike =
            |owned: &Owned| owned.data.as_ref().is_some_and(|data| data.has_lengths(parts));
        if owned.values().any(is_alike) {
            let name = hash(parts);
            let same = |owned: &&mut Owned| {
                is_alike(owned) && owned.data.as_ref().is_some_and(|data| data.hash() == name)
            };
            if let Some(owned) = owned.values_mut().find(same) {
                owned.owners += 1;
                return Ok(owned.blob);
            }
        }
        let what = "making shared memory";
        let data = SharedData::new(parts, &self.common.shared_pool)
            .map_err(|error| GridError::System { what, error })?;
        let data = Arc::new(data);
        let mut state = self.common.lock();
        let what = "drawing a number";
        let blob = state.next_blob().map_err(|error| GridError::System { what, error })?;
        owned.insert(blob, Owned { blob, data: Some(Arc::clone(&data)), owners: 1 });
        state.shared.insert(blob, data);
        state.core.share(blob);
        Ok(blob)
    }

    /// Refers to data that a server keeps under a name, until [`Grid::unshare`]. Calls that use it have to run there.
    ///
    /// # Errors
    /// When this process is a child of the grid's.
    pub fn refer(&self, blob: BlobId) -> Result<(), GridError> {
        self.check_process()?;
        let mut owned = self.owned.lock().unwrap_or_else(PoisonError::into_inner);
        owned.entry(blob).or_insert(Owned { blob, data: None, owners: 0 }).owners += 1;
        self.common.lock().core.share(blob);
        Ok(())
    }

    /// Drops one owner of shared data.
    pub fn unshare(&self, blob: BlobId) {
        if self.check_process().is_err() {
            return;
        }
        let mut owned = self.owned.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(one) = owned.get_mut(&blob) else { return };
        one.owners -= 1;
        if one.owners > 0 {
            return;
        }
        owned.remove(&blob);
        drop(owned);
        let mut state = self.common.lock();
        state.drive(|core, out| core.unshare(blob, out));
        self.common.finish(state);
    }

    /// Shares data under the caller's number.
    pub fn share_as(&self, blob: BlobId, data: Arc<SharedData>) {
        let mut state = self.common.lock();
        state.shared.insert(blob, data);
        state.core.share(blob);
    }

    /// Stops sharing data under the caller's number.
    pub fn unshare_named(&self, blob: BlobId) {
        let mut state = self.common.lock();
        state.drive(|core, out| core.unshare(blob, out));
        self.common.finish(state);
    }
}
