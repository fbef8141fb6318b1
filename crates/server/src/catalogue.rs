//! The modules that a server offers now, by name.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use gridrpc_idl::Module;
use gridrpc_typed::{ModuleError, interface_hash, interface_text, read_interface};
use thiserror::Error;

use crate::config::{CallSettings, PythonModule};

/// Longest file of a module, bytes.
const LONGEST: u64 = 4 << 30;

/// Why a module is not offered.
#[derive(Debug, Error)]
pub enum CatalogueError {
    /// The file is not a module.
    #[error(transparent)]
    Module(#[from] ModuleError),
    /// The file cannot be read, or its copy not be written.
    #[error("could not copy the module `{}` to `{}`: {error}", file.display(), folder.display())]
    Copy {
        /// The file.
        file: PathBuf,
        /// The folder for copies.
        folder: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// Another module has its name.
    #[error("`{}` has the name of the module `{name}`, which comes from `{}`: rename one of the two", file.display(), other.display())]
    SameName {
        /// The name.
        name: String,
        /// The file.
        file: PathBuf,
        /// The other module's file.
        other: PathBuf,
    },
    /// There is no such module.
    #[error("there is no module `{name}`; the server offers {}", listed(known))]
    Unknown {
        /// The name.
        name: String,
        /// The modules that there are.
        known: Vec<String>,
    },
}

fn listed(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// A module as it is offered now.
#[derive(Debug)]
pub struct OfferedModule {
    /// Its name.
    pub name: String,
    /// The code that runs.
    pub code: Code,
    /// How its calls run.
    pub settings: CallSettings,
    /// Calls that have begun and not ended.
    pub(crate) alive: AtomicU64,
    /// Mean run time of its calls, in which later ones weigh more, ns; 0: none has ended.
    mean_run: AtomicU64,
}

/// Weight of the last run time in the mean.
const LAST_WEIGHT: f64 = 0.2;

/// The code of a module.
#[derive(Debug)]
pub enum Code {
    /// A shared library.
    Library {
        /// The file that was published.
        source: PathBuf,
        /// The copy that workers load: its name has the hash of its content, so that another version is another file.
        file: PathBuf,
        /// Its interface.
        interface: Arc<Module>,
        /// The interface as text, as in the file.
        text: String,
        /// The hash of the text, hexadecimal.
        hash: String,
    },
    /// Functions and classes of Python packages.
    Python(PythonModule),
}

impl OfferedModule {
    /// Its functions and methods: `function` or `Class.method`.
    #[must_use]
    pub fn functions(&self) -> Vec<String> {
        match &self.code {
            Code::Library { interface, .. } => {
                let functions = interface.functions.iter().map(|function| function.name.clone());
                let methods = interface.classes.iter().flat_map(|class| {
                    let name =
                        |method: &gridrpc_idl::Function| format!("{}.{}", class.name, method.name);
                    class.methods.iter().map(name)
                });
                functions.chain(methods).collect()
            }
            Code::Python(python) => {
                let names = python.functions.iter().chain(&python.classes);
                names.map(|name| name.name.clone()).collect()
            }
        }
    }

    /// Whether it has this function or method.
    #[must_use]
    pub fn has(&self, function: &str) -> bool {
        match &self.code {
            Code::Library { interface, .. } => match function.split_once('.') {
                None => interface.function(function).is_some(),
                Some((class, method)) => interface
                    .class(class)
                    .is_some_and(|class| class.methods.iter().any(|known| known.name == method)),
            },
            Code::Python(python) => match function.split_once('.') {
                None => {
                    python.functions.iter().chain(&python.classes).any(|name| name.name == function)
                }
                Some((class, method)) => {
                    let is_offered = method == PythonModule::MAKE || !method.starts_with('_');
                    let is_name = !method.is_empty() && !method.contains('.');
                    is_offered && is_name && python.classes.iter().any(|name| name.name == class)
                }
            },
        }
    }

    /// Whether it has this class.
    #[must_use]
    pub fn has_class(&self, name: &str) -> bool {
        match &self.code {
            Code::Library { interface, .. } => interface.class(name).is_some(),
            Code::Python(_) => false,
        }
    }

    /// Calls that have begun and not ended.
    #[must_use]
    pub fn alive(&self) -> u64 {
        self.alive.load(Ordering::Relaxed)
    }

    /// Calls that may run at a time. `common_workers`: workers of the common pool.
    pub(crate) fn most_running(&self, common_workers: u32) -> u32 {
        self.settings.most_running.unwrap_or(common_workers)
    }

    /// Whether its queue is full. `common_workers`: workers of the common pool.
    pub(crate) fn is_full(&self, common_workers: u32) -> bool {
        let running = u64::from(self.most_running(common_workers));
        self.settings.most_queued.is_some_and(|most| self.alive() >= running + u64::from(most))
    }

    /// Counts the run time of a call that has ended.
    pub(crate) fn ran(&self, time: Duration) {
        let (time, before) = (time.as_nanos() as f64, self.mean_run.load(Ordering::Relaxed) as f64);
        let mean = if before > 0.0 { before + LAST_WEIGHT * (time - before) } else { time };
        self.mean_run.store(mean.max(1.0) as u64, Ordering::Relaxed);
    }

    /// The time until so many of its calls have probably ended, if so many run at a time; none: unknown.
    pub(crate) fn expected_wait(&self, calls: u64, at_a_time: u32) -> Option<Duration> {
        let mean = self.mean_run.load(Ordering::Relaxed);
        let wait = mean.saturating_mul(calls) / u64::from(at_a_time.max(1));
        (mean > 0).then(|| Duration::from_nanos(wait))
    }
}

/// All modules.
#[derive(Debug)]
pub struct Catalogue {
    modules: RwLock<BTreeMap<String, Arc<OfferedModule>>>,
    /// The folder for copies.
    copies: PathBuf,
}

impl Catalogue {
    /// Keeps copies of modules in this folder.
    #[must_use]
    pub fn new(copies: PathBuf) -> Catalogue {
        Catalogue { modules: RwLock::default(), copies }
    }

    /// The module with this name.
    #[must_use]
    pub fn module(&self, name: &str) -> Option<Arc<OfferedModule>> {
        self.read().get(name).cloned()
    }

    /// All modules, by name.
    #[must_use]
    pub fn modules(&self) -> Vec<Arc<OfferedModule>> {
        self.read().values().cloned().collect()
    }

    /// Offers the module in a file, in place of an older version. Returns its name, and whether that is new or has
    /// changed.
    ///
    /// # Errors
    /// When it is not a module, another file has its name, or it cannot be copied.
    pub fn publish(
        &self,
        file: &Path,
        settings: impl Fn(&str) -> CallSettings,
    ) -> Result<(String, bool), CatalogueError> {
        let read = read_interface(file)?;
        let name = read.interface.name.clone();
        if let Some(other) = self.module(&name) {
            match &other.code {
                Code::Library { source, .. } if source == file => {}
                Code::Library { source, .. } => {
                    let (file, other) = (file.to_owned(), source.clone());
                    return Err(CatalogueError::SameName { name, file, other });
                }
                Code::Python(_) => {
                    let (file, other) = (file.to_owned(), PathBuf::from("server.toml"));
                    return Err(CatalogueError::SameName { name, file, other });
                }
            }
        }
        let copy = self.copy(file, &name).map_err(|error| CatalogueError::Copy {
            file: file.to_owned(),
            folder: self.copies.clone(),
            error,
        })?;
        // The copy counts: the file may have changed meanwhile.
        let read = read_interface(&copy)?;
        let text = interface_text(&read).to_owned();
        let hash = interface_hash(&text);
        let code = Code::Library {
            source: file.to_owned(),
            file: copy.clone(),
            interface: read.interface,
            text,
            hash,
        };
        let mut modules = self.modules.write().unwrap_or_else(PoisonError::into_inner);
        let is_same = modules.get(&name).is_some_and(
            |known| matches!(&known.code, Code::Library { file, .. } if *file == copy),
        );
        if !is_same {
            let (settings, alive, mean_run) =
                (settings(&name), AtomicU64::new(0), AtomicU64::new(0));
            let module = OfferedModule { name: name.clone(), code, settings, alive, mean_run };
            modules.insert(name.clone(), Arc::new(module));
        }
        Ok((name, !is_same))
    }

    /// Offers functions of Python packages.
    pub fn offer_python(&self, name: &str, python: &PythonModule) {
        let module = OfferedModule {
            name: name.to_owned(),
            code: Code::Python(python.clone()),
            settings: python.calls.clone(),
            alive: AtomicU64::new(0),
            mean_run: AtomicU64::new(0),
        };
        let mut modules = self.modules.write().unwrap_or_else(PoisonError::into_inner);
        modules.insert(name.to_owned(), Arc::new(module));
    }

    /// Offers a module no more. Its calls that have begun continue.
    ///
    /// # Errors
    /// When there is none.
    pub fn withdraw(&self, name: &str) -> Result<Arc<OfferedModule>, CatalogueError> {
        let mut modules = self.modules.write().unwrap_or_else(PoisonError::into_inner);
        modules.remove(name).ok_or_else(|| CatalogueError::Unknown {
            name: name.to_owned(),
            known: modules.keys().cloned().collect(),
        })
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, BTreeMap<String, Arc<OfferedModule>>> {
        self.modules.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Copies a file under the hash of its content. Workers of an older version keep theirs.
    fn copy(&self, file: &Path, name: &str) -> io::Result<PathBuf> {
        let mut opened = fs::File::open(file)?;
        let size = opened.metadata()?.len();
        if size > LONGEST {
            return Err(io::Error::other(format!("it has {size} bytes, more than {LONGEST}")));
        }
        let new = self.copies.join(format!(".{name}.{}", random()?));
        let copied = copy_hashed(&mut opened, &new);
        let placed = copied.and_then(|hash| {
            let folder = self.copies.join(&hash[..32]);
            // Workers of other users load the copy, whatever the umask is.
            fs::create_dir_all(&folder)?;
            fs::set_permissions(&folder, fs::Permissions::from_mode(0o755))?;
            fs::set_permissions(&new, fs::Permissions::from_mode(0o555))?;
            let copy = folder.join(format!("{name}.so"));
            if copy.is_file() {
                fs::remove_file(&new)?
            } else {
                fs::rename(&new, &copy)?
            }
            Ok(copy)
        });
        if placed.is_err() {
            let _ = fs::remove_file(&new);
        }
        placed
    }
}

fn copy_hashed(from: &mut fs::File, to: &Path) -> io::Result<String> {
    let mut written = fs::File::options().write(true).create_new(true).mode(0o755).open(to)?;
    io::copy(from, &mut written)?;
    written.sync_all()?;
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(fs::File::open(to)?)?;
    Ok(hasher.finalize().to_hex().to_string())
}

fn random() -> io::Result<String> {
    Ok(gridrpc_sys::random::<8>()?.map(|byte| format!("{byte:02x}")).concat())
}
