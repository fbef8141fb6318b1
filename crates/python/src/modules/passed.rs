//! Results of calls as arguments of other calls, which get them without Python code in between.

use std::any::Any;
use std::sync::Arc;

use gridrpc_client::{Dependency, Hold, ResultArray};
use gridrpc_idl::{Kind, Parameter};
use gridrpc_invoke::CallResult;
use gridrpc_typed::dtype;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::modules::target::is_returned;

/// The result of a call that has not been taken, as an argument of another.
#[pyclass(frozen, module = "gridrpc._native")]
pub struct Passed {
    pub call: Arc<Hold>,
    /// The Python object of the call.
    pub owner: Arc<dyn Any + Send + Sync>,
    /// The array that the other call takes; none: the call has failed.
    pub array: Option<PassedArray>,
}

/// An array that a call returns.
#[derive(Clone)]
pub struct PassedArray {
    pub array: ResultArray,
    pub shape: Vec<u64>,
    pub fortran: bool,
}

impl Passed {
    /// The argument.
    pub fn result(&self) -> Option<CallResult> {
        let PassedArray { array, shape, fortran } = self.array.clone()?;
        let (call, owner) = (Arc::clone(&self.call), Arc::clone(&self.owner));
        Some(CallResult { call, owner, array, shape, fortran })
    }

    /// The failed dependency.
    pub fn failed(&self) -> Dependency {
        let (call, owner) = (Arc::clone(&self.call), Arc::clone(&self.owner));
        Dependency { call, array: None, owner }
    }
}

/// Which of the returned arrays is meant: its place among the results, their number, and its parameter. `name`: of the
/// result, if there are several.
///
/// # Errors
/// When there is no such array, or more than one.
pub fn returned_array(
    target: &gridrpc_invoke::Target,
    name: Option<&str>,
) -> PyResult<(usize, usize, usize)> {
    let (function, parameters) = (&target.name, &target.interface().parameters);
    let returned: Vec<(usize, &Parameter)> =
        parameters.iter().enumerate().filter(|(_, parameter)| is_returned(parameter)).collect();
    let names = || {
        let names = returned.iter().map(|(_, parameter)| format!("`{}`", parameter.name));
        names.collect::<Vec<_>>().join(", ")
    };
    let place = match name {
        Some(name) => {
            let place = returned.iter().position(|(_, parameter)| parameter.name == name);
            place.ok_or_else(|| {
                let names = if returned.is_empty() { "nothing".into() } else { names() };
                PyValueError::new_err(format!(
                    "{function} has no result `{name}`: it returns {names}"
                ))
            })?
        }
        None if returned.len() == 1 => 0,
        None if returned.is_empty() => {
            return Err(PyTypeError::new_err(format!(
                "{function} returns no result that could be an argument"
            )));
        }
        None => {
            let names = names();
            return Err(PyTypeError::new_err(format!(
                "{function} returns several results ({names}): pass one of them, `call.output(name)`"
            )));
        }
    };
    let (index, parameter) = returned[place];
    match &parameter.kind {
        Kind::Array { element, .. } if dtype(*element).is_some() => {
            Ok((place, returned.len(), index))
        }
        _ => Err(PyTypeError::new_err(format!(
            "{function}: its result `{}` is no array of numbers: wait for the call, and give the result",
            parameter.name
        ))),
    }
}
