//! Lookup of modules by name, and of functions in them.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use gridrpc_client::{FunctionRef, Grid};
use gridrpc_idl::Function;
use gridrpc_typed::{ModuleError, ModuleFile, read_interface};
use gridrpc_wire::FunctionForm;
use thiserror::Error;

/// Reason why a function or module was not found.
#[derive(Debug, Error)]
pub enum SearchError {
    /// The name is not valid.
    #[error("`{0}` is not a function's name: write `module/function`")]
    Name(String),
    /// There is no such module.
    #[error("there is no module `{module}`{}", places(looked))]
    NoModule {
        /// The module.
        module: String,
        /// Places that were searched.
        looked: Vec<PathBuf>,
    },
    /// The module has no such function.
    #[error("module `{module}` has no function `{function}`; it has {}", known.join(", "))]
    NoFunction {
        /// The module.
        module: String,
        /// The function.
        function: String,
        /// Its functions.
        known: Vec<String>,
    },
    /// The file is not a module.
    #[error(transparent)]
    Module(#[from] ModuleError),
}

fn places(looked: &[PathBuf]) -> String {
    if looked.is_empty() {
        return ", and no place to look for one: name its folder in `modules=` or in \
                GRIDRPC_MODULE_PATH, or register it with `gridrpc register`"
            .into();
    }
    let places: Vec<String> = looked.iter().map(|path| format!("`{}`", path.display())).collect();
    format!(" in {}", places.join(", "))
}

/// A function of a module, registered with a grid.
#[derive(Debug)]
pub struct Target {
    /// `module/function`, or `module/Class.method`.
    pub name: Arc<str>,
    pub(crate) function: Arc<FunctionRef>,
    module: Arc<ModuleFile>,
    /// Index of its class, if it is a method, and its own index.
    place: (Option<usize>, usize),
}

impl Target {
    /// Registers a module's function with the grid. `name`: `function`, or `Class.method`.
    ///
    /// # Errors
    /// When the module has no such function.
    pub fn new(grid: &Grid, module: &Arc<ModuleFile>, name: &str) -> Result<Target, SearchError> {
        let interface = &module.interface;
        let at = |functions: &[Function], name: &str| functions.iter().position(|f| f.name == name);
        let place = match name.split_once('.') {
            None => at(&interface.functions, name).map(|index| (None, index)),
            Some((class, method)) => {
                interface.classes.iter().position(|known| known.name == class).and_then(|class| {
                    Some((Some(class), at(&interface.classes[class].methods, method)?))
                })
            }
        };
        let Some(place) = place else {
            return Err(SearchError::NoFunction {
                module: interface.name.clone(),
                function: name.to_owned(),
                known: function_names(module),
            });
        };
        let full = format!("{}/{name}", interface.name);
        let path = std::path::absolute(&module.path).unwrap_or_else(|_| module.path.clone());
        let body = path.into_os_string().into_encoded_bytes();
        let function = grid.register(&full, FunctionForm::Library, body);
        Ok(Target { name: full.into(), function, module: Arc::clone(module), place })
    }

    /// Its interface.
    #[must_use]
    pub fn interface(&self) -> &Function {
        let module = &self.module.interface;
        match self.place {
            (None, index) => &module.functions[index],
            (Some(class), index) => &module.classes[class].methods[index],
        }
    }

    /// Its module.
    #[must_use]
    pub fn module(&self) -> &Arc<ModuleFile> {
        &self.module
    }
}

/// The functions and methods of a module, by call name.
fn function_names(module: &ModuleFile) -> Vec<String> {
    let interface = &module.interface;
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
