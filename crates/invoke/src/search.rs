//! Search of modules by name in files and folders of this machine.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use gridrpc_idl::Module;
use gridrpc_typed::{ModuleFile, read_interface};

use crate::search_error::SearchError;

/// The functions and methods of a module, by call name.
pub(crate) fn function_names(interface: &Module) -> Vec<String> {
    let functions = interface.functions.iter().map(|function| function.name.clone());
    let methods = interface.classes.iter().flat_map(|class| {
        class.methods.iter().map(move |method| format!("{}.{}", class.name, method.name))
    });
    functions.chain(methods).collect()
}

/// Search path for modules: files, and folders with files `NAME.so`.
#[derive(Debug, Default)]
pub struct ModuleSearch {
    places: Vec<PathBuf>,
    found: Mutex<HashMap<String, Arc<ModuleFile>>>,
}

impl ModuleSearch {
    /// Creates a search path, in order.
    #[must_use]
    pub fn new(places: Vec<PathBuf>) -> ModuleSearch {
        ModuleSearch { places, found: Mutex::default() }
    }

    /// The places.
    #[must_use]
    pub fn places(&self) -> &[PathBuf] {
        &self.places
    }

    /// The module with this name.
    ///
    /// # Errors
    /// When there is none, or its file is broken.
    pub fn find(&self, module: &str) -> Result<Arc<ModuleFile>, SearchError> {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(module) = found.get(module) {
            return Ok(Arc::clone(module));
        }
        for place in &self.places {
            let file =
                if place.is_dir() { place.join(format!("{module}.so")) } else { place.clone() };
            if !file.is_file() {
                continue;
            }
            let read = read_interface(&file)?;
            if read.interface.name == module {
                let read = Arc::new(read);
                found.insert(module.to_owned(), Arc::clone(&read));
                return Ok(read);
            }
        }
        Err(SearchError::NoModule { module: module.to_owned(), looked: self.places.clone() })
    }

    /// The module of a function `module/function`, and the function's name in it. A bare name is searched for in all
    /// modules.
    ///
    /// # Errors
    /// When there is no such module.
    pub fn resolve<'n>(&self, name: &'n str) -> Result<(Arc<ModuleFile>, &'n str), SearchError> {
        if let Some((module, function)) = name.split_once('/') {
            if module.is_empty() || function.is_empty() {
                return Err(SearchError::Name(name.to_owned()));
            }
            return Ok((self.find(module)?, function));
        }
        let holds = |module: &Arc<ModuleFile>| {
            let interface = &module.interface;
            interface.function(name).is_some() || interface.class(name).is_some()
        };
        let module = self.all().into_iter().find(holds);
        module.map(|module| (module, name)).ok_or_else(|| SearchError::Name(name.to_owned()))
    }

    /// All available modules; files that are not modules are skipped.
    #[must_use]
    pub fn all(&self) -> Vec<Arc<ModuleFile>> {
        let mut all: Vec<Arc<ModuleFile>> = Vec::new();
        for file in self.places.iter().flat_map(|place| files(place)) {
            if let Ok(module) = read_interface(&file)
                && !all.iter().any(|known| known.interface.name == module.interface.name)
            {
                all.push(Arc::new(module));
            }
        }
        all
    }
}

fn files(place: &Path) -> Vec<PathBuf> {
    if !place.is_dir() {
        return vec![place.to_owned()];
    }
    let entries = std::fs::read_dir(place).into_iter().flatten().flatten();
    let is_library = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "so");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(is_library).collect();
    files.sort();
    files
}
