//! Shared data that a server keeps under a name.

use std::sync::Arc;

use gridrpc_client::{ServerCatalogue, SharedName};
use gridrpc_core::BlobId;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::buffer::View;
use crate::detached::ask;
use crate::errors;
use crate::grid::Grid;

/// Type of the elements, whether the first index runs fastest, and dimensions.
type Shape = (String, bool, Vec<u64>);
/// Owner, name, number, readers, ms since 1970 when it is removed, shape, and bytes.
type DataInfo = (String, String, u64, Vec<String>, u64, Option<Shape>, u64);

fn described(data: SharedName) -> DataInfo {
    let SharedName { owner, name, number, readers, until, dtype, fortran, dims, bytes } = data;
    (owner, name, number, readers, until, dtype.map(|dtype| (dtype, fortran, dims)), bytes)
}

/// Named data of the server of a grid.
#[pyclass(frozen, module = "gridrpc._native")]
pub struct NamedData {
    grid: Arc<gridrpc_client::Grid>,
    server: Arc<ServerCatalogue>,
}

#[pymethods]
impl NamedData {
    /// That of the first server of a grid.
    #[new]
    fn new(grid: &Grid) -> PyResult<NamedData> {
        let grid = grid.shared();
        let server = grid.server_catalogues().first().cloned();
        let server = server.ok_or_else(|| PyTypeError::new_err("the grid has no server"))?;
        Ok(NamedData { grid, server })
    }

    /// Has the server keep data under a name. `description`: a JSON object.
    fn share(
        &self,
        py: Python<'_>,
        description: &str,
        data: &Bound<'_, PyAny>,
    ) -> PyResult<DataInfo> {
        let view = View::new(data)?;
        let bytes = view.bytes();
        ask(py, |interrupted| self.server.share_named(description, bytes, interrupted))
            .map(described)
    }

    /// Describes data that the server keeps.
    fn find(&self, py: Python<'_>, name: &str) -> PyResult<DataInfo> {
        ask(py, |interrupted| self.server.named_data(name, interrupted)).map(described)
    }

    /// Removes data that the server keeps.
    fn remove(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        ask(py, |interrupted| self.server.unshare_named(name, interrupted))
    }

    /// Describes all data that the server keeps and the user may read.
    fn all(&self, py: Python<'_>) -> PyResult<Vec<DataInfo>> {
        let all = ask(py, |interrupted| self.server.shared_names(interrupted))?;
        Ok(all.into_iter().map(described).collect())
    }

    /// Refers to data that the server keeps, until `unshare`.
    fn refer(&self, number: u64) -> PyResult<()> {
        self.grid.refer(BlobId(number)).map_err(|error| errors::grid(&error))
    }
}
