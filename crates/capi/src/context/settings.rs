//! Settings: one configuration, and the functions and classes resolved with it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use gridrpc_client::{Code, Grid, GridError};
use gridrpc_core::GroupId;
use gridrpc_invoke::{InterfaceSources, LocatedModule, ModuleSearch, Target};
use gridrpc_lookup::{Directories, ServerOffer};
use gridrpc_typed::catalogue::default_places;
use gridrpc_typed::{ModuleFile, read_interface};

use super::call_grid::CallGrid;
use super::grids::Grids;
use super::launch;
use crate::call::function::Function;
use crate::config::{
    ArgumentTransfer, ClientConfig, Location, ServerSettings, ThisMachine, WaitTime, host_of,
};
use crate::errors::ErrorCode;
use crate::failure::Failure;

/// The name of this machine in every grid that has workers here.
const HERE: &str = "localhost";

/// Environment variable with the URLs of directories.
const DIRECTORY: &str = "GRIDRPC_DIRECTORY";

/// A class for creating objects.
#[derive(Debug)]
pub struct Class {
    /// `module/class`.
    pub name: String,
    /// Its methods, by name.
    pub methods: HashMap<String, Arc<Function>>,
    /// What its objects run.
    pub code: Code,
}

/// A resolved function or class, with the configuration of its server.
#[derive(Clone, Debug)]
pub struct Resolved<T> {
    /// The function or class.
    pub item: Arc<T>,
    /// Time limit of a session.
    pub session_timeout: Option<Duration>,
    /// How long a worker may take to start.
    pub start: WaitTime,
    /// How long to wait for a worker to exit.
    pub stop: WaitTime,
    /// When an asynchronous call returns.
    pub transfer: ArgumentTransfer,
    /// Number of ranks of a parallel function.
    pub ranks: Option<u32>,
    /// The server as named; empty if any of several servers may be used.
    pub server: String,
    /// The server that runs its calls; `None`: any server.
    pub bound: Option<GroupId>,
    /// The grid that runs its calls.
    pub grid: Arc<CallGrid>,
    /// The directories that choose the server of each call; none: the grid is that of the server.
    pub directory: Option<Arc<Directories>>,
}

/// Cache of resolved names.
#[derive(Debug, Default)]
struct NameCache {
    locations: HashMap<String, Location>,
    /// By server and name.
    functions: HashMap<(String, String), Arc<Function>>,
    classes: HashMap<(String, String), Arc<Class>>,
    files: HashMap<PathBuf, Arc<ModuleFile>>,
}

/// One configuration, and a cache of the names resolved with it.
#[derive(Debug)]
pub struct Settings {
    /// The configuration.
    pub config: ClientConfig,
    search: ModuleSearch,
    known: Mutex<NameCache>,
}

impl Settings {
    /// Settings of a configuration.
    pub fn new(config: ClientConfig) -> Settings {
        let search = ModuleSearch::new(places(&config));
        Settings { config, search, known: Mutex::default() }
    }

    /// Reads the configuration file that a program names. NULL and an empty name stand for the default file,
    /// which need not exist.
    pub fn read(file: Option<&str>) -> Result<Settings, Failure> {
        let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let file = match file.filter(|file| !file.is_empty()) {
            Some(file) => Some(PathBuf::from(file)),
            None => variable("NG_CONFIG_FILE").map(PathBuf::from).or_else(|| {
                let usual = PathBuf::from(variable("HOME")?).join(".ngconf");
                usual.exists().then_some(usual)
            }),
        };
        let config =
            file.map_or_else(|| Ok(ClientConfig::default()), |file| ClientConfig::read(&file));
        Ok(Settings::new(config?))
    }

    /// Search path of modules.
    pub fn search(&self) -> &ModuleSearch {
        &self.search
    }

    /// Settings of the server for programs that name none.
    pub fn default_server(&self) -> &ServerSettings {
        self.config.default_server().map_or(&self.config.server_default, |server| &server.settings)
    }

    /// Resolves the server of a handle: its name, its settings, and the host group that the handle's calls
    /// are bound to.
    fn server(
        &self,
        grid: &Grid,
        named: Option<&str>,
    ) -> Result<(String, &ServerSettings, Option<GroupId>), Failure> {
        let Some(name) = named else {
            if grid.has_hosts() {
                return Ok((String::new(), self.default_server(), None));
            }
            let server = self.config.default_server();
            let name = server.and_then(|server| server.hostnames.first());
            let name = name.map_or("localhost", String::as_str);
            self.bound(grid, name)?;
            return Ok((name.to_owned(), self.default_server(), None));
        };
        let bound = self.bound(grid, name)?;
        let settings =
            self.config.server(name).map_or(&self.config.server_default, |server| &server.settings);
        Ok((name.to_owned(), settings, bound))
    }

    /// The host group that calls to this server are bound to. On a single machine there is no choice.
    fn bound(&self, grid: &Grid, name: &str) -> Result<Option<GroupId>, Failure> {
        let catalogues = grid.server_catalogues();
        if let Some(server) = catalogues.iter().find(|catalogue| catalogue.is_called(name))
            && let Ok(server) = grid.group(&server.name)
        {
            return Ok(Some(server));
        }
        if grid.has_hosts() {
            // Port and job manager are not part of a host's name.
            for name in [name, host_of(name)] {
                if let Ok(server) = grid.group(name) {
                    return Ok(Some(server));
                }
            }
        }
        let known = self.lock().locations.get(name).copied();
        // A name server can take a while to answer.
        let location = known.unwrap_or_else(|| self.config.location(name, &ThisMachine));
        self.lock().locations.insert(name.to_owned(), location);
        let unknown = |why: &str, error: &GridError| {
            Failure::new(ErrorCode::ServerNotFound, format!("`{name}` {why}: {error}"))
        };
        match (location, grid.group(HERE)) {
            (Location::Here, Ok(_)) if !grid.has_hosts() => Ok(None),
            (Location::Here, Ok(server)) => Ok(Some(server)),
            // The program targets this machine, and the environment redirects it to other hosts.
            (Location::Here, Err(_)) if launch::is_sent_elsewhere() => Ok(None),
            (Location::Here, Err(error)) => {
                Err(unknown("is this machine, which has no workers (see GRIDRPC_WORKERS)", &error))
            }
            (Location::Elsewhere, _) => {
                // There is none, as checked above; this produces the error.
                grid.group(name).map(Some).map_err(|error| {
                    let detail = format!("`{name}` is not this machine, and {error}");
                    Failure::new(ErrorCode::ServerNotFound, detail)
                })
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, NameCache> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks that a name without a module refers to only one function or class.
    fn check_bare(&self, name: &str) -> Result<(), Failure> {
        if name.contains('/') {
            return Ok(());
        }
        let all = self.search.all();
        let interfaces = all.iter().map(|module| &module.interface);
        let having: Vec<&str> = interfaces
            .filter(|module| module.function(name).is_some() || module.class(name).is_some())
            .map(|module| module.name.as_str())
            .collect();
        if having.len() < 2 {
            return Ok(());
        }
        Err(Failure::new(
            ErrorCode::FunctionNotFound,
            format!("`{name}` is in modules {}: write `module/{name}`", having.join(", ")),
        ))
    }

    /// The module of a function or class, and its name in the module.
    fn module<'n>(
        &self,
        grid: &Grid,
        server: &str,
        name: &'n str,
    ) -> Result<(LocatedModule, &'n str), Failure> {
        let Some(info) = self.config.function_info(server, name) else {
            self.check_bare(name)?;
            let named = Some(server).filter(|server| !server.is_empty());
            return Ok(InterfaceSources::new(&self.search, grid, named).resolve(name)?);
        };
        let known = self.lock().files.get(&info.path).cloned();
        let module =
            match known {
                Some(module) => module,
                None => Arc::new(read_interface(&info.path).map_err(|error| {
                    Failure::new(ErrorCode::FunctionNotFound, error.to_string())
                })?),
            };
        self.lock().files.insert(info.path.clone(), Arc::clone(&module));
        let (of, own) = name.split_once('/').unwrap_or(("", name));
        if !of.is_empty() && of != module.interface.name {
            return Err(Failure::new(
                ErrorCode::FunctionNotFound,
                format!(
                    "`{name}`: the configuration has module `{}` for it, `{}`",
                    module.interface.name,
                    info.path.display()
                ),
            ));
        }
        Ok((LocatedModule::File(module), own))
    }

    fn resolve<T>(
        &self,
        grids: &Grids,
        server: Option<&str>,
        name: &str,
        find: impl FnOnce(&Grid, &str) -> Result<Arc<T>, Failure>,
    ) -> Result<Resolved<T>, Failure> {
        let mut grid = Arc::clone(&grids.main);
        let found = match self.server(&grid.grid, server) {
            Err(failure) if failure.code == ErrorCode::ServerNotFound => {
                let own = server.map(|name| grids.of_server(name)).transpose()?.flatten();
                // A server that no configuration names.
                grid = own.ok_or(failure)?;
                let name = server.unwrap_or_default().to_owned();
                (name, &self.config.server_default, None)
            }
            found => found?,
        };
        let (server, settings, bound) = found;
        let item = find(&grid.grid, &server)?;
        let info = self.config.function_info(&server, name);
        Ok(Resolved {
            item,
            session_timeout: info.and_then(|info| info.session_timeout),
            start: settings.job_start_timeout,
            stop: settings.job_stop_timeout,
            transfer: settings.argument_transfer,
            ranks: settings.ranks_of(name),
            server,
            bound,
            grid,
            directory: None,
        })
    }

    /// Resolves a function: at the server that is named, or by a directory, whose server is chosen again for each call.
    pub fn function(
        &self,
        grids: &Grids,
        server: Option<&str>,
        name: &str,
    ) -> Result<Resolved<Function>, Failure> {
        if let Some(urls) = server.filter(|server| Directories::is_url(server)) {
            return self.function_in(&grids.directories(urls)?, grids, name);
        }
        let has_servers = self.config.default_server().is_some() || grids.main.grid.has_hosts();
        let usual = || std::env::var(DIRECTORY).ok().filter(|urls| !urls.is_empty());
        let Some(urls) = usual().filter(|_| server.is_none() && !has_servers) else {
            return self.function_at(grids, server, name);
        };
        let found = grids.directories(&urls).and_then(|one| self.function_in(&one, grids, name));
        // A function that no server offers may be one of a module here.
        found.or_else(|failure| self.function_at(grids, None, name).map_err(|_| failure))
    }

    /// Resolves a function by a directory: its interface is that of the first server that answers.
    fn function_in(
        &self,
        directories: &Arc<Directories>,
        grids: &Grids,
        name: &str,
    ) -> Result<Resolved<Function>, Failure> {
        let answer = directories.answer(name)?;
        let mut offers: Vec<&ServerOffer> = answer
            .offers
            .iter()
            .filter(|offer| offer.signature.is_some() && !offer.is_silent)
            .collect();
        offers.sort_by(|one, other| {
            one.is_full.cmp(&other.is_full).then(one.load.total_cmp(&other.load))
        });
        let none = match answer.offers.iter().all(|offer| offer.signature.is_none()) {
            true => "it is in Python, and only Python programs call it",
            false => "all servers that offer it are silent",
        };
        let mut failure = Failure::new(ErrorCode::ServerNotFound, format!("{name}: {none}"));
        for offer in offers {
            let url = directories.server_url(&offer.address);
            match self.function_at(grids, Some(&url), name) {
                Ok(resolved) => {
                    return Ok(Resolved { directory: Some(Arc::clone(directories)), ..resolved });
                }
                Err(error) => {
                    directories.refuse(&offer.address);
                    self.forget(&url);
                    grids.forget(&url);
                    failure = error;
                }
            }
        }
        Err(failure)
    }

    /// Drops cached names of a server.
    pub fn forget(&self, server: &str) {
        self.lock().functions.retain(|(at, _), _| at != server);
    }

    /// Resolves a function at a server and registers it with the grid.
    pub fn function_at(
        &self,
        grids: &Grids,
        server: Option<&str>,
        name: &str,
    ) -> Result<Resolved<Function>, Failure> {
        let resolved = self.resolve(grids, server, name, |grid, server| {
            let key = (server.to_owned(), name.to_owned());
            if let Some(known) = self.lock().functions.get(&key)
                && !known.target.has_changed()
            {
                return Ok(Arc::clone(known));
            }
            let (module, own) = self.module(grid, server, name)?;
            if own.contains('.') {
                return Err(Failure::new(
                    ErrorCode::FunctionNotFound,
                    format!("`{name}` is a method: make an object, and invoke it there"),
                ));
            }
            let target = Target::found(grid, &module, own)?;
            let function = Arc::new(Function::new(target, self.config.fortran_compatible));
            self.lock().functions.insert(key, Arc::clone(&function));
            Ok(function)
        })?;
        let ranks = resolved.ranks.filter(|_| resolved.item.target.interface().is_parallel());
        Ok(Resolved { ranks, ..resolved })
    }

    /// Resolves a class and registers its methods with the grid.
    pub fn class(
        &self,
        grids: &Grids,
        server: Option<&str>,
        name: &str,
    ) -> Result<Resolved<Class>, Failure> {
        if server.is_some_and(Directories::is_url) {
            let detail = format!(
                "`{name}`: an object stays at its server: name that server, not a directory"
            );
            return Err(Failure::new(ErrorCode::ServerNotFound, detail));
        }
        self.resolve(grids, server, name, |grid, server| {
            let key = (server.to_owned(), name.to_owned());
            if let Some(known) = self.lock().classes.get(&key) {
                return Ok(Arc::clone(known));
            }
            let none = |failure: Failure| Failure::new(ErrorCode::ClassNotFound, failure.detail);
            let (module, own) = self.module(grid, server, name).map_err(none)?;
            let interface = module.interface();
            let class = interface.class(own).ok_or_else(|| {
                let known: Vec<&str> =
                    interface.classes.iter().map(|class| class.name.as_str()).collect();
                let module = &interface.name;
                let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                Failure::new(
                    ErrorCode::ClassNotFound,
                    format!("module `{module}` has no class `{own}`; it has {known}"),
                )
            })?;
            let mut methods = HashMap::new();
            for method in &class.methods {
                let target = Target::found(grid, &module, &format!("{own}.{}", method.name))?;
                let function = Function::new(target, self.config.fortran_compatible);
                methods.insert(method.name.clone(), Arc::new(function));
            }
            let code = if module.server().is_some() { Code::Offered } else { Code::Module };
            let class = Class { name: format!("{}/{own}", interface.name), methods, code };
            let class = Arc::new(class);
            self.lock().classes.insert(key, Arc::clone(&class));
            Ok(class)
        })
    }
}

/// Search path of modules: locations from the configuration, locations from the environment, the catalogue,
/// and the current folder.
fn places(config: &ClientConfig) -> Vec<PathBuf> {
    let wanted = config.default_server().map_or(&config.server_default, |server| &server.settings);
    let wanted = &wanted.information_source;
    let sources = config.information_sources.iter();
    let sources = sources.filter(|source| wanted.is_none() || source.tag == *wanted);
    let listed = sources.flat_map(|source| &source.files);
    let mut places: Vec<PathBuf> = listed.flat_map(|file| listed_in(file)).collect();
    let infos = config.function_infos.iter().map(|info| info.path.clone());
    // Old configurations name executables of Ninf-G, which are not modules.
    places.extend(infos.filter(|path| read_interface(path).is_ok()));
    places.extend(default_places());
    places.extend(std::env::current_dir());
    places
}

/// The modules that a file of `ng_gen` lists. Other lines are Ninf-G's and ignored.
fn listed_in(file: &Path) -> Vec<PathBuf> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let folder = file.parent().unwrap_or(Path::new(""));
    let lines = text.lines().filter_map(|line| line.trim().strip_prefix("module "));
    lines.map(|path| folder.join(path.trim())).collect()
}
