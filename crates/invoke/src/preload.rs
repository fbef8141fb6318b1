//! Modules that workers load at start.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use gridrpc_client::{Config, GridError, Preload};
use gridrpc_core::{Cause, Loss, Refusal};
use gridrpc_typed::read_interface;

use crate::search::ModuleSearch;

/// Makes the workers of this machine load the modules in `here` at start, and those of host groups the modules of
/// their group. A path, or a name that ends in `.so`, is the file of a compiled module. Any other name is a Python
/// module if workers run Python (`python`), or else a compiled module, which `search` finds.
///
/// # Errors
/// When a compiled module does not exist.
pub fn preload(
    config: &mut Config,
    here: &[String],
    python: bool,
    search: &ModuleSearch,
) -> Result<(), GridError> {
    if let Some(groups) = &mut config.groups {
        let found = groups.list.iter().map(|group| found(&group.preload, python, search));
        groups.workers.preload = found.collect::<Result<_, _>>()?;
    }
    let Preload { modules, libraries } = found(here, python, search)?;
    let preload = &mut config.launch.preparation.preload;
    preload.modules.extend(modules);
    preload.libraries.extend(libraries);
    Ok(())
}

fn found(wanted: &[String], python: bool, search: &ModuleSearch) -> Result<Preload, GridError> {
    let mut preload = Preload::default();
    for name in wanted {
        let is_file = name.contains('/') || name.ends_with(".so");
        let (list, name) = if python && !is_file {
            (&mut preload.modules, name.clone())
        } else {
            let found = if is_file { file(Path::new(name)) } else { named(name, search) };
            (&mut preload.libraries, found.map_err(|why| not_there(name, &why))?)
        };
        if !list.contains(&name) {
            list.push(name);
        }
    }
    Ok(preload)
}

fn file(path: &Path) -> Result<String, String> {
    let module = read_interface(path).map_err(|error| error.to_string())?;
    text(&module.path)
}

fn named(name: &str, search: &ModuleSearch) -> Result<String, String> {
    let module = search.find(name).map_err(|error| error.to_string())?;
    text(&module.path)
}

/// The path as text, as calls use it.
fn text(path: &Path) -> Result<String, String> {
    let path: PathBuf = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let text = path.into_os_string().into_string();
    text.map_err(|path| format!("{path:?} is not UTF-8"))
}

fn not_there(name: &str, why: &str) -> GridError {
    let cause = Cause::Failed(format!(
        "`preload` names {name:?}, which this machine does not have as a compiled module: {why}; \
         compile it by `gridrpc compile`, name another one, or take it out"
    ));
    let (worker, pid) = (Loss::HOST, 0);
    let loss = Loss { worker, pid, host: gridrpc_sys::host_name(), cause, stderr: String::new() };
    GridError::Refused(Refusal::NoWorkers(Arc::new(loss)))
}
