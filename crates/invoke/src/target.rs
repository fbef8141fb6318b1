//! Functions of modules, registered with a grid.

use std::sync::{Arc, Mutex, PoisonError};

use gridrpc_client::{FunctionRef, Grid, ServerModule};
use gridrpc_idl::{Function, Module};
use gridrpc_typed::ModuleFile;
use gridrpc_wire::FunctionForm;

use crate::argument::{ArgumentValue, PrepareError};
use crate::call_size::size_of_call;
use crate::limit_exceeded::LimitExceeded;
use crate::search::function_names;
use crate::search_error::SearchError;
use crate::source::LocatedModule;

/// Index of a function's class, if it is a method, and its own index.
type FunctionIndex = (Option<usize>, usize);

/// A function of a module, registered with a grid.
#[derive(Debug)]
pub struct Target {
    /// `module/function`, or `module/Class.method`.
    pub name: Arc<str>,
    module: Arc<Module>,
    place: FunctionIndex,
    function: Registered,
}

/// The function as the grid knows it.
#[derive(Debug)]
enum Registered {
    File(Arc<FunctionRef>),
    /// With the interface that the calls refer to.
    Offered(Mutex<(Arc<ServerModule>, Arc<FunctionRef>)>),
}

impl Target {
    /// Registers a module's function with the grid. `name`: `function`, or `Class.method`.
    ///
    /// # Errors
    /// When the module has no such function.
    pub fn new(grid: &Grid, module: &Arc<ModuleFile>, name: &str) -> Result<Target, SearchError> {
        let interface = &module.interface;
        let place = place_of(interface, name).ok_or_else(|| no_function(interface, name))?;
        let full = format!("{}/{name}", interface.name);
        let path = std::path::absolute(&module.path).unwrap_or_else(|_| module.path.clone());
        let body = path.into_os_string().into_encoded_bytes();
        let function = Registered::File(grid.register(&full, FunctionForm::Library, body));
        Ok(Target { name: full.into(), module: Arc::clone(interface), place, function })
    }

    /// A function that is registered with a grid already. `name`: `function`, or `Class.method`.
    ///
    /// # Errors
    /// When the module has no such function.
    pub fn registered(
        module: &Arc<Module>,
        name: &str,
        function: Arc<FunctionRef>,
    ) -> Result<Target, SearchError> {
        let place = place_of(module, name).ok_or_else(|| no_function(module, name))?;
        let full = format!("{}/{name}", module.name);
        let (module, function) = (Arc::clone(module), Registered::File(function));
        Ok(Target { name: full.into(), module, place, function })
    }

    /// Registers a function that was found in a source of interfaces.
    ///
    /// # Errors
    /// When the module has no such function, or the grid has not its server.
    pub fn found(grid: &Grid, module: &LocatedModule, name: &str) -> Result<Target, SearchError> {
        match module {
            LocatedModule::File(module) => Target::new(grid, module, name),
            LocatedModule::Offered(module) => Target::offered(grid, module, name),
        }
    }

    fn offered(grid: &Grid, module: &Arc<ServerModule>, name: &str) -> Result<Target, SearchError> {
        let interface = &module.interface;
        let place = place_of(interface, name).ok_or_else(|| no_function(interface, name))?;
        let function = grid.register_offered(module, name)?;
        let full = format!("{}/{name}", interface.name);
        let interface = Arc::clone(interface);
        let function = Registered::Offered(Mutex::new((Arc::clone(module), function)));
        Ok(Target { name: full.into(), module: interface, place, function })
    }

    /// Its interface.
    #[must_use]
    pub fn interface(&self) -> &Function {
        function_at(&self.module, self.place)
    }

    /// The registered function.
    #[must_use]
    pub fn function(&self) -> Arc<FunctionRef> {
        match &self.function {
            Registered::File(function) => Arc::clone(function),
            Registered::Offered(offered) => {
                Arc::clone(&offered.lock().unwrap_or_else(PoisonError::into_inner).1)
            }
        }
    }

    /// The server that runs it; none: this grid's workers do.
    #[must_use]
    pub fn server(&self) -> Option<String> {
        match &self.function {
            Registered::File(_) => None,
            Registered::Offered(offered) => {
                let offered = offered.lock().unwrap_or_else(PoisonError::into_inner);
                Some(offered.0.server.clone())
            }
        }
    }

    /// The server that runs it, and the function's name there.
    pub(crate) fn offered_name(&self) -> Option<(String, String)> {
        let Registered::Offered(offered) = &self.function else { return None };
        let offered = offered.lock().unwrap_or_else(PoisonError::into_inner);
        let ServerModule { server, hash, .. } = &*offered.0;
        Some((server.clone(), format!("{}#{hash}", self.name)))
    }

    /// Whether its server has refused a call because the interface has changed.
    #[must_use]
    pub fn has_changed(&self) -> bool {
        match &self.function {
            Registered::File(_) => false,
            Registered::Offered(offered) => {
                offered.lock().unwrap_or_else(PoisonError::into_inner).0.has_changed()
            }
        }
    }

    /// Checks whether the server's limits allow a call with these arguments. If those announced with the interface do
    /// not, they are requested again: the server's owner may have raised them.
    ///
    /// # Errors
    /// When the call exceeds a limit even without any other call, or the server does not answer.
    ///
    /// # Safety
    /// Arrays without a known length must be as long as the interface says.
    pub(crate) unsafe fn check_limits(
        &self,
        grid: &Grid,
        given: &[ArgumentValue],
    ) -> Result<(), PrepareError> {
        let Registered::Offered(offered) = &self.function else { return Ok(()) };
        let module = Arc::clone(&offered.lock().unwrap_or_else(PoisonError::into_inner).0);
        let limits = module.limits();
        if limits.bytes.is_none() && limits.memory.is_none() && limits.workers.is_none() {
            return Ok(());
        }
        // SAFETY: guaranteed by the caller.
        let size = unsafe { size_of_call(self.interface(), given) };
        if size.exceeded(&limits).is_none() {
            return Ok(());
        }
        let catalogue = grid.server_catalogues().iter().find(|known| known.name == module.server);
        let now = catalogue.map(|known| known.limits_now(&module.interface.name)).transpose();
        // If the module is gone, the server says so.
        let Some(limits) = now.map_err(SearchError::from)?.flatten() else { return Ok(()) };
        size.exceeded(&limits).map_or(Ok(()), |(limit, value, allowed)| {
            let (function, server) = (self.name.to_string(), module.server.clone());
            let user = limits.user.clone();
            Err(LimitExceeded { function, server, user, limit, value, allowed }.into())
        })
    }

    /// Requests the interface again if it has changed. If the function has the same parameters as before, it can be
    /// called again.
    ///
    /// # Errors
    /// When it has others or is gone, or the server does not answer.
    pub fn refresh(&self, grid: &Grid) -> Result<(), SearchError> {
        let Registered::Offered(offered) = &self.function else { return Ok(()) };
        let old = Arc::clone(&offered.lock().unwrap_or_else(PoisonError::into_inner).0);
        if !old.has_changed() {
            return Ok(());
        }
        let catalogue =
            grid.server_catalogues().iter().find(|catalogue| catalogue.name == old.server);
        let module = match catalogue {
            Some(catalogue) => catalogue.module(&self.name)?,
            None => None,
        };
        let (_, own) = self.name.split_once('/').unwrap_or(("", &self.name));
        let now = module.as_ref().and_then(|module| {
            Some(function_at(&module.interface, place_of(&module.interface, own)?))
        });
        let was = self.interface();
        match (&module, now) {
            (Some(module), Some(now)) if is_compatible(was, now) => {
                let function = grid.register_offered(module, own)?;
                let mut offered = offered.lock().unwrap_or_else(PoisonError::into_inner);
                *offered = (Arc::clone(module), function);
                Ok(())
            }
            (_, now) => Err(SearchError::Changed {
                name: self.name.to_string(),
                server: old.server.clone(),
                was: was.signature(),
                now: now.map(Function::signature),
            }),
        }
    }
}

/// Whether arguments and results of a call are the same for both, and it may run as often.
fn is_compatible(was: &Function, now: &Function) -> bool {
    was.parameters == now.parameters
        && was.fortran() == now.fortran()
        && was.idempotent == now.idempotent
        && was.is_parallel() == now.is_parallel()
}

fn place_of(interface: &Module, name: &str) -> Option<FunctionIndex> {
    let at = |functions: &[Function], name: &str| functions.iter().position(|f| f.name == name);
    match name.split_once('.') {
        None => at(&interface.functions, name).map(|index| (None, index)),
        Some((class, method)) => {
            let class = interface.classes.iter().position(|known| known.name == class)?;
            Some((Some(class), at(&interface.classes[class].methods, method)?))
        }
    }
}

fn function_at(module: &Module, place: FunctionIndex) -> &Function {
    match place {
        (None, index) => &module.functions[index],
        (Some(class), index) => &module.classes[class].methods[index],
    }
}

fn no_function(interface: &Module, name: &str) -> SearchError {
    SearchError::NoFunction {
        module: interface.name.clone(),
        function: name.to_owned(),
        known: function_names(interface),
    }
}
