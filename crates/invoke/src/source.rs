//! Sources of interfaces: module files of this machine, and the servers of a grid.

use std::sync::Arc;

use gridrpc_client::{Grid, ServerCatalogue, ServerCatalogueError, ServerModule};
use gridrpc_idl::{Module, nearest};
use gridrpc_typed::ModuleFile;

use crate::search::{ModuleSearch, function_names};
use crate::search_error::SearchError;

/// A module that a source has.
#[derive(Clone, Debug)]
pub enum LocatedModule {
    /// A file of this machine.
    File(Arc<ModuleFile>),
    /// A module that a server offers.
    Offered(Arc<ServerModule>),
}

impl LocatedModule {
    /// Its interface.
    #[must_use]
    pub fn interface(&self) -> &Arc<Module> {
        match self {
            LocatedModule::File(module) => &module.interface,
            LocatedModule::Offered(module) => &module.interface,
        }
    }

    /// The server that offers it; none: it is a file of this machine.
    #[must_use]
    pub fn server(&self) -> Option<&str> {
        match self {
            LocatedModule::File(_) => None,
            LocatedModule::Offered(module) => Some(&module.server),
        }
    }
}

/// A source of module interfaces.
pub trait InterfaceSource {
    /// The module of a function or class `module/name`; none: this source does not have it.
    ///
    /// # Errors
    /// When the source cannot say.
    fn module_of(&self, name: &str) -> Result<Option<LocatedModule>, SearchError>;

    /// The module that has a function or class with this bare name.
    ///
    /// # Errors
    /// When the source cannot say.
    fn module_with(&self, bare: &str) -> Result<Option<LocatedModule>, SearchError>;

    /// All functions, `module/function`.
    ///
    /// # Errors
    /// When the source cannot say.
    fn functions(&self) -> Result<Vec<String>, SearchError>;
}

impl InterfaceSource for ModuleSearch {
    fn module_of(&self, name: &str) -> Result<Option<LocatedModule>, SearchError> {
        let (module, _) = name.split_once('/').unwrap_or((name, ""));
        match self.find(module) {
            Ok(module) => Ok(Some(LocatedModule::File(module))),
            Err(SearchError::NoModule { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn module_with(&self, bare: &str) -> Result<Option<LocatedModule>, SearchError> {
        match self.resolve(bare) {
            Ok((module, _)) => Ok(Some(LocatedModule::File(module))),
            Err(SearchError::Name(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn functions(&self) -> Result<Vec<String>, SearchError> {
        let all = self.all();
        let names = all.iter().flat_map(|module| {
            let interface = &module.interface;
            function_names(interface)
                .into_iter()
                .map(move |name| format!("{}/{name}", interface.name))
        });
        Ok(names.collect())
    }
}

impl InterfaceSource for ServerCatalogue {
    fn module_of(&self, name: &str) -> Result<Option<LocatedModule>, SearchError> {
        Ok(self.module(name)?.map(LocatedModule::Offered))
    }

    fn module_with(&self, bare: &str) -> Result<Option<LocatedModule>, SearchError> {
        let list = self.list()?;
        let own = |name: &str| {
            let (_, own) = name.split_once('/')?;
            // An object is made of a class, whose methods are in the list.
            Some(own == bare || own.split_once('.').is_some_and(|(class, _)| class == bare))
        };
        let entry = list.iter().find(|entry| own(&entry.name) == Some(true));
        entry.map_or(Ok(None), |entry| self.module_of(&entry.name))
    }

    fn functions(&self) -> Result<Vec<String>, SearchError> {
        Ok(self.list()?.iter().map(|entry| entry.name.clone()).collect())
    }
}

/// The sources of a grid, in search order.
#[derive(Debug)]
pub struct InterfaceSources<'a> {
    files: Option<&'a ModuleSearch>,
    servers: Vec<&'a ServerCatalogue>,
}

impl<'a> InterfaceSources<'a> {
    /// The files of this machine, then the servers of the grid. `server`: the server that the calls are bound to; if it
    /// offers functions, it is the only source.
    #[must_use]
    pub fn new(
        files: &'a ModuleSearch,
        grid: &'a Grid,
        server: Option<&str>,
    ) -> InterfaceSources<'a> {
        let all = grid.server_catalogues();
        let named = all.iter().filter(|known| server.is_some_and(|name| known.is_called(name)));
        let named: Vec<&ServerCatalogue> = named.map(|known| &**known).collect();
        if named.is_empty() {
            let servers = all.iter().map(|known| &**known).collect();
            InterfaceSources { files: Some(files), servers }
        } else {
            InterfaceSources { files: None, servers: named }
        }
    }

    fn all(&self) -> impl Iterator<Item = &'a dyn InterfaceSource> {
        let files = self.files.map(|files| files as &dyn InterfaceSource);
        files.into_iter().chain(self.servers.iter().map(|server| *server as &dyn InterfaceSource))
    }

    /// The module of a function or class, and its name in the module. A bare name is searched for in all modules.
    /// A server that does not answer counts only if no other source has the function.
    ///
    /// # Errors
    /// When no source has it.
    pub fn resolve<'n>(&self, name: &'n str) -> Result<(LocatedModule, &'n str), SearchError> {
        if let (Some(files), true) = (self.files, self.servers.is_empty()) {
            return files.resolve(name).map(|(module, own)| (LocatedModule::File(module), own));
        }
        let parts = name.split_once('/');
        if parts.map_or(name.is_empty(), |(module, own)| module.is_empty() || own.is_empty()) {
            return Err(SearchError::Name(name.to_owned()));
        }
        let mut failures = Vec::new();
        for source in self.all() {
            let found = match parts {
                Some(_) => source.module_of(name),
                None => source.module_with(name),
            };
            match found {
                Ok(Some(module)) => return Ok((module, parts.map_or(name, |(_, own)| own))),
                Ok(None) => {}
                Err(SearchError::Server(error)) => failures.push(error),
                Err(error) => return Err(error),
            }
        }
        Err(self.not_found(name, failures))
    }

    fn not_found(&self, name: &str, failures: Vec<ServerCatalogueError>) -> SearchError {
        if !failures.is_empty() {
            return SearchError::Unanswered { name: name.to_owned(), failures };
        }
        let names: Vec<String> =
            self.all().flat_map(|source| source.functions().unwrap_or_default()).collect();
        if names.iter().any(|known| known == name) {
            return SearchError::WithoutInterface { name: name.to_owned() };
        }
        SearchError::NotFound {
            name: name.to_owned(),
            looked: self.files.map_or(&[][..], ModuleSearch::places).to_vec(),
            servers: self.servers.iter().map(|server| server.name.clone()).collect(),
            near: near(name, &names),
        }
    }
}

/// The function that is probably meant.
fn near(name: &str, all: &[String]) -> Option<String> {
    let own = |name: &str| name.split_once('/').map_or(name.to_owned(), |(_, own)| own.to_owned());
    let wanted = own(name);
    let with = |similar: &str| all.iter().find(|known| own(known) == similar).cloned();
    let full = || nearest(name, all.iter().map(String::as_str)).map(str::to_owned);
    let bare = || {
        let owns: Vec<String> = all.iter().map(|known| own(known)).collect();
        with(nearest(&wanted, owns.iter().map(String::as_str))?)
    };
    // The same function in another module, then a slip in the name.
    with(&wanted).or_else(full).or_else(bare)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_with_a_similar_name_is_meant() {
        let all = ["linear/solve", "linear/invert", "fft/forward"].map(str::to_owned);
        let meant = |name| near(name, &all);
        assert_eq!(meant("linear/solv").as_deref(), Some("linear/solve"));
        assert_eq!(meant("lapack/solve").as_deref(), Some("linear/solve"));
        assert_eq!(meant("forwrad").as_deref(), Some("fft/forward"));
        assert_eq!(meant("sort"), None);
    }
}
