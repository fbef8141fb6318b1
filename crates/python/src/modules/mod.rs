//! Functions of modules for Python: finds them, calls them with arrays in place, and takes their results.

mod arguments;
mod call;
mod callbacks;
mod chunk;
mod passed;
mod results;
mod target;

use std::sync::Arc;

use gridrpc_core::Reservation;
use gridrpc_invoke::InterfaceSources;
use pyo3::prelude::*;

use crate::buffer::Buffer;
use crate::errors;

pub use call::{Pending, PreparedCall, call_size, make};
pub use chunk::{Bounds, PendingChunk, make_chunk};
pub use passed::{Passed, PassedArray, returned_array};
pub use target::Target;

/// Search path for modules.
#[pyclass(frozen, module = "gridrpc._native")]
pub struct Modules {
    search: gridrpc_invoke::ModuleSearch,
}

impl Modules {
    pub fn search(&self) -> &gridrpc_invoke::ModuleSearch {
        &self.search
    }
}

#[pymethods]
impl Modules {
    /// Searches these files and folders, then those of the environment and the catalogue.
    #[new]
    fn new(places: Vec<String>) -> Modules {
        let mut all: Vec<std::path::PathBuf> = places.into_iter().map(Into::into).collect();
        all.extend(gridrpc_typed::catalogue::default_places());
        Modules { search: gridrpc_invoke::ModuleSearch::new(all) }
    }

    /// Names and files of all available modules.
    fn all(&self) -> Vec<(String, String)> {
        let name = |module: &Arc<gridrpc_typed::ModuleFile>| {
            (module.interface.name.clone(), module.path.display().to_string())
        };
        self.search.all().iter().map(name).collect()
    }
}

/// The methods of a class `module/Class`, by name, and the server that offers it, if one does.
pub fn methods(
    py: Python<'_>,
    grid: &gridrpc_client::Grid,
    modules: &Modules,
    name: &str,
    server: Option<&str>,
) -> PyResult<(Vec<String>, Option<String>)> {
    let sources = InterfaceSources::new(&modules.search, grid, server);
    let (module, class) =
        py.detach(|| sources.resolve(name)).map_err(|error| errors::search(&error))?;
    let interface = module.interface();
    let class = interface.class(class).ok_or_else(|| {
        let known = interface.classes.iter().map(|class| class.name.as_str());
        let known = known.collect::<Vec<_>>().join(", ");
        let known = if known.is_empty() { "none" } else { &known };
        let module = &interface.name;
        errors::function_not_found(format!(
            "module `{module}` has no class `{class}`; it has {known}"
        ))
    })?;
    let methods = class.methods.iter().map(|method| method.name.clone()).collect();
    Ok((methods, module.server().map(str::to_owned)))
}

/// A worker reserved for one remote object.
#[pyclass(frozen, module = "gridrpc._native")]
pub struct Reserved {
    pub reservation: Reservation,
}

/// Shared memory for an array: `gridrpc.empty`.
#[pyfunction]
pub fn shared_memory(py: Python<'_>, len: usize) -> PyResult<Buffer> {
    let array = py.detach(|| gridrpc_shm::SharedArray::new(len));
    let array = array.map_err(|error| errors::system("no shared memory for an array", &error))?;
    Ok(Buffer::of_array(array))
}
