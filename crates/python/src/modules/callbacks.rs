//! Python functions that a running function calls back.

use std::sync::{Arc, Mutex, PoisonError};

use gridrpc_client::CallbackHandler;
use gridrpc_idl::{Kind, Mode, Parameter};
use gridrpc_invoke::{CallbackFrame, CallbackValue};
use gridrpc_link::payload::{Incoming, Payload, PayloadBuilder};
use gridrpc_typed::{Scalar, dtype};
use gridrpc_wire::Order;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyComplex, PyTuple};

use crate::buffer::Buffer;
use crate::modules::results::{numpy_array, texts_to_python};

/// Python functions that a running function calls back.
pub struct PythonCallbacks {
    pub grid: Arc<gridrpc_client::Grid>,
    pub frame: CallbackFrame,
    pub callbacks: Vec<Py<PyAny>>,
    /// Whether the first index of arrays varies fastest.
    pub fortran: bool,
    /// The first error that one of them has raised.
    pub raised: Arc<Mutex<Option<PyErr>>>,
}

impl CallbackHandler for PythonCallbacks {
    fn run(&self, index: u16, arguments: Vec<Incoming>, order: Order) -> Result<Payload, String> {
        let payload: PayloadBuilder<'_> = self.grid.payload();
        self.frame.run(index, (arguments, order), payload, |parameters, values| {
            let function =
                self.callbacks.get(usize::from(index)).ok_or("there is no such callback")?;
            Python::attach(|py| {
                self.call(py, function, parameters, values).map_err(|error| {
                    let text = error.to_string();
                    let mut raised = self.raised.lock().unwrap_or_else(PoisonError::into_inner);
                    raised.get_or_insert(error);
                    text
                })
            })
        })
    }
}

impl PythonCallbacks {
    /// Arrays are NumPy arrays; OUT and INOUT ones have to be changed in place.
    fn call(
        &self,
        py: Python<'_>,
        function: &Py<PyAny>,
        parameters: &[Parameter],
        values: &mut [CallbackValue],
    ) -> PyResult<()> {
        let mut arguments = Vec::with_capacity(values.len());
        for (parameter, value) in parameters.iter().zip(values.iter_mut()) {
            arguments.push(match (value, &parameter.kind) {
                (CallbackValue::Scalar(Scalar::Int(value)), Kind::Scalar(of))
                    if !of.is_signed() =>
                {
                    value.cast_unsigned().into_pyobject(py)?.into_any()
                }
                (CallbackValue::Scalar(Scalar::Int(value)), _) => {
                    value.into_pyobject(py)?.into_any()
                }
                (CallbackValue::Scalar(Scalar::Float(value)), _) => {
                    value.into_pyobject(py)?.into_any()
                }
                (CallbackValue::Scalar(Scalar::Complex(re, im)), _) => {
                    PyComplex::from_doubles(py, *re, *im).into_any()
                }
                (CallbackValue::Array { elements, dimensions }, Kind::Array { element, .. }) => {
                    let dtype = dtype(*element)
                        .ok_or_else(|| PyTypeError::new_err("a callback with strings"))?;
                    let bytes = Incoming::Bytes(std::mem::take(elements));
                    numpy_array(py, dimensions, dtype, self.fortran, Buffer::new(bytes, false))?
                }
                (CallbackValue::Array { .. }, _) => py.None().into_bound(py),
                (CallbackValue::Texts(texts), _) => {
                    texts_to_python(py, parameter, std::mem::take(texts))?
                }
            });
        }
        function.bind(py).call1(PyTuple::new(py, &arguments)?)?;
        for ((parameter, value), argument) in parameters.iter().zip(values).zip(&arguments) {
            if let CallbackValue::Array { elements, .. } = value {
                let goes = matches!(parameter.mode, Mode::Out | Mode::InOut);
                *elements = if goes {
                    crate::buffer::View::new(argument)?.bytes().to_vec()
                } else {
                    Vec::new()
                };
            }
        }
        Ok(())
    }
}
