//! A function of a module: the parameters that a caller passes, and those that are returned.

use std::sync::Arc;

use gridrpc_idl::{Dimension, Expr, Kind, Mode, Parameter, Type};
use gridrpc_invoke::{ArgumentError, InterfaceSources};
use gridrpc_typed::describe;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::errors;
use crate::modules::Modules;

/// A function of a module, known to a grid.
#[pyclass(frozen, module = "gridrpc._native")]
pub struct Target {
    pub target: Arc<gridrpc_invoke::Target>,
    /// Parameters that a caller passes, and whether each may be omitted.
    pub passed: Vec<(usize, bool)>,
}

#[pymethods]
impl Target {
    /// `module/function`.
    #[getter]
    fn name(&self) -> &str {
        &self.target.name
    }

    /// Description for programs, as JSON.
    #[getter]
    fn description(&self) -> String {
        describe::json_of_function(self.target.interface()).to_string()
    }

    /// Whether a call may run again if its worker is lost.
    #[getter]
    fn idempotent(&self) -> bool {
        self.target.interface().idempotent
    }

    /// Whether it runs on several MPI ranks.
    #[getter]
    fn parallel(&self) -> bool {
        self.target.interface().is_parallel()
    }

    /// Whether its server has refused a call because the interface has changed.
    #[getter]
    fn has_changed(&self) -> bool {
        self.target.has_changed()
    }

    /// The parameters that a caller passes, in order, and whether each may be omitted.
    #[getter]
    fn passed(&self) -> Vec<(String, bool)> {
        let parameters = &self.target.interface().parameters;
        self.passed.iter().map(|(at, left_out)| (parameters[*at].name.clone(), *left_out)).collect()
    }

    /// The returned parameters, in order.
    #[getter]
    fn returned(&self) -> Vec<String> {
        let parameters = self.target.interface().parameters.iter();
        parameters.filter(|p| is_returned(p)).map(|p| p.name.clone()).collect()
    }
}

/// Whether a parameter is part of the return value: results that the caller does not pass, and changed strings,
/// because Python strings are immutable.
pub fn is_returned(parameter: &Parameter) -> bool {
    match parameter.mode {
        Mode::Out => !is_of(parameter, Type::Filename),
        Mode::InOut => is_of(parameter, Type::String),
        Mode::In | Mode::Work => false,
    }
}

/// Whether a caller passes a parameter: inputs, and the names of output files.
fn is_passed(parameter: &Parameter) -> bool {
    match parameter.mode {
        Mode::In | Mode::InOut => true,
        Mode::Out => is_of(parameter, Type::Filename),
        Mode::Work => false,
    }
}

fn is_of(parameter: &Parameter, wanted: Type) -> bool {
    match parameter.kind {
        Kind::Scalar(of) | Kind::Array { element: of, .. } => of == wanted,
        Kind::Callback(_) => false,
    }
}

impl Target {
    /// `server`: the server that its calls are bound to.
    pub fn find(
        py: Python<'_>,
        grid: &gridrpc_client::Grid,
        modules: &Modules,
        name: &str,
        server: Option<&str>,
    ) -> PyResult<Target> {
        let sources = InterfaceSources::new(&modules.search, grid, server);
        // A server may take a while to answer.
        let found = py.detach(|| {
            let (module, function) = sources.resolve(name)?;
            gridrpc_invoke::Target::found(grid, &module, function)
        });
        let target = Arc::new(found.map_err(|error| errors::search(&error))?);
        let parameters = &target.interface().parameters;
        let passed = parameters.iter().enumerate().filter(|(_, parameter)| is_passed(parameter));
        let passed = passed.map(|(at, _)| (at, is_derived(parameters, at))).collect();
        Ok(Target { target, passed })
    }

    /// Requests the interface again if it has changed.
    pub fn refresh(&self, py: Python<'_>, grid: &gridrpc_client::Grid) -> PyResult<()> {
        if !self.target.has_changed() {
            return Ok(());
        }
        py.detach(|| self.target.refresh(grid)).map_err(|error| errors::search(&error))
    }

    pub fn parameter(&self, index: usize) -> &Parameter {
        &self.target.interface().parameters[index]
    }

    pub fn bad(&self, parameter: &str, problem: impl Into<String>) -> PyErr {
        errors::argument(&ArgumentError {
            function: self.target.name.to_string(),
            parameter: parameter.to_owned(),
            problem: problem.into(),
        })
    }

    /// The parameters of the first positional arguments, if `count` are given.
    pub fn places(&self, count: usize) -> impl Iterator<Item = usize> + '_ {
        let needed = self.passed.iter().filter(|(_, left_out)| !left_out).count();
        let all = count > needed;
        let places = self.passed.iter().filter(move |(_, left_out)| all || !left_out);
        places.map(|(place, _)| *place).take(count)
    }

    /// The parameter with this name, if a caller passes it.
    pub fn place(&self, name: &str) -> Option<usize> {
        let mut places = self.passed.iter().map(|(place, _)| *place);
        places.find(|place| self.parameter(*place).name == name)
    }

    /// Whether a caller may omit a parameter that it could pass.
    pub fn may_be_left_out(&self, index: usize) -> bool {
        self.passed.contains(&(index, true))
    }

    /// Assigns objects to parameters.
    pub fn assign<'py>(
        &self,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Vec<Option<Bound<'py, PyAny>>>> {
        let mut given = vec![None; self.target.interface().parameters.len()];
        if args.len() > self.passed.len() {
            let (most, got) = (self.passed.len(), args.len());
            return Err(self.bad("", format!("takes {most} arguments, but {got} are given")));
        }
        for (place, value) in self.places(args.len()).zip(args.iter()) {
            given[place] = Some(value);
        }
        for (name, value) in kwargs.into_iter().flatten() {
            let name: String = name.extract()?;
            let Some(place) = self.place(&name) else {
                return Err(self.bad(&name, "is not one of its arguments"));
            };
            if given[place].replace(value).is_some() {
                return Err(self.bad(&name, "is given twice"));
            }
        }
        Ok(given)
    }
}

/// Whether an integer is the length of a dimension of an array that the caller passes.
fn is_derived(parameters: &[Parameter], scalar: usize) -> bool {
    let is_it = |dimension: &Dimension| matches!(dimension.size, Some(Expr::Scalar(size)) if size == scalar);
    matches!(parameters[scalar].kind, Kind::Scalar(of) if of.is_integer())
        && parameters.iter().any(|parameter| match &parameter.kind {
            Kind::Array { dimensions, .. } => {
                matches!(parameter.mode, Mode::In | Mode::InOut) && dimensions.iter().any(is_it)
            }
            _ => false,
        })
}
