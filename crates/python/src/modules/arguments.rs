//! Python objects as arguments of functions of modules.

use gridrpc_client::Dependency;
use gridrpc_idl::{Kind, Mode, Type};
use gridrpc_invoke::{ArgumentValue, SharedPart};
use gridrpc_typed::Scalar;
use gridrpc_wire::DType;
use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyComplex, PyFloat, PyInt, PyString};

use crate::arrays::ArrayView;
use crate::modules::passed::Passed;
use crate::modules::target::Target;
use crate::package;

/// Description of an array: element type, Fortran order, shape.
type Shape = (String, bool, Vec<u64>);

pub struct Arguments<'t, 'py> {
    pub target: &'t Target,
    /// Native grid of the shared data.
    native: &'t Bound<'py, PyAny>,
    pub views: Vec<ArrayView>,
    pub callbacks: Vec<Py<PyAny>>,
    /// Hold shared data, which may be replaced before the call has been submitted.
    pub leases: Vec<Py<PyAny>>,
    /// A call that has failed, whose result is an argument: the call with these arguments fails as well.
    pub failed: Option<Dependency>,
}

impl<'t, 'py> Arguments<'t, 'py> {
    pub fn new(target: &'t Target, native: &'t Bound<'py, PyAny>) -> Arguments<'t, 'py> {
        let (views, callbacks, leases) = (Vec::new(), Vec::new(), Vec::new());
        Arguments { target, native, views, callbacks, leases, failed: None }
    }

    /// Takes the objects of all parameters, as they are assigned.
    pub fn take_all(
        &mut self,
        objects: &[Option<Bound<'py, PyAny>>],
    ) -> PyResult<Vec<ArgumentValue>> {
        let target = self.target;
        let mut given = Vec::with_capacity(objects.len());
        for (index, object) in objects.iter().enumerate() {
            let parameter = target.parameter(index);
            given.push(match object {
                None if matches!(parameter.kind, Kind::Callback(_)) => {
                    let problem = "is missing: give a function to call back";
                    return Err(target.bad(&parameter.name, problem));
                }
                None if target.passed.contains(&(index, false)) => {
                    return Err(target.bad(&parameter.name, "is missing"));
                }
                None => ArgumentValue::Absent,
                // As declared in the signature.
                Some(object) if object.is_none() && target.may_be_left_out(index) => {
                    ArgumentValue::Absent
                }
                Some(object) => self.take(index, object)?,
            });
        }
        Ok(given)
    }

    /// Rejects texts with a zero byte, which C would truncate, and empty file names. C programs may pass those, but
    /// here they are a mistake.
    fn check_texts(&self, index: usize, of: Type, texts: &[Option<Vec<u8>>]) -> PyResult<()> {
        if of == Type::Filename && texts.iter().any(|text| text.as_ref().is_none_or(Vec::is_empty))
        {
            let problem = "has to name a file";
            return Err(self.target.bad(&self.target.parameter(index).name, problem));
        }
        if texts.iter().flatten().any(|text| text.contains(&0)) {
            let problem = "has a zero byte in it, at which C would end it";
            return Err(self.target.bad(&self.target.parameter(index).name, problem));
        }
        Ok(())
    }

    /// An array in the shared data of the grid.
    fn shared(&mut self, object: &Bound<'_, PyAny>) -> PyResult<SharedPart> {
        let described = object.call_method1("part", (self.native,))?;
        let (shape, blob, part, len): (Option<Shape>, u64, u32, usize) = described.extract()?;
        let (dtype, shape) = match shape {
            None => (DType::UInt8, vec![len as u64]),
            Some((dtype, fortran, shape)) => {
                let dtype = DType::from_name(&dtype).ok_or_else(|| {
                    PyTypeError::new_err(format!(
                        "shared arrays of type `{dtype}` cannot go to module functions"
                    ))
                })?;
                let ours = self.target.target.interface().fortran();
                if fortran != ours && shape.len() > 1 {
                    let order = if ours { "Fortran" } else { "C" };
                    return Err(PyTypeError::new_err(format!(
                        "`{}` takes arrays in {order} order, and the shared one has the other",
                        self.target.target.name
                    )));
                }
                (dtype, shape)
            }
        };
        self.leases.push(described.unbind());
        Ok(SharedPart { blob, part, len, dtype, shape })
    }

    /// An array in the memory of this process.
    fn array(
        &mut self,
        index: usize,
        element: Type,
        object: &Bound<'_, PyAny>,
    ) -> PyResult<ArgumentValue> {
        let parameter = self.target.parameter(index);
        let writable = parameter.mode != Mode::In;
        let fortran = self.target.target.interface().fortran();
        let view = ArrayView::of_argument(object, element, fortran, writable);
        let view = view.map_err(|problem| self.target.bad(&parameter.name, problem))?;
        let memory = view.memory();
        self.views.push(view);
        Ok(ArgumentValue::Array(memory))
    }

    pub fn take(&mut self, index: usize, object: &Bound<'_, PyAny>) -> PyResult<ArgumentValue> {
        let parameter = self.target.parameter(index);
        let bad = |problem: String| self.target.bad(&parameter.name, problem);
        match &parameter.kind {
            Kind::Callback(_) => {
                if !object.is_callable() {
                    return Err(bad(format!("has to be callable, not {}", kind_of(object))));
                }
                self.callbacks.push(object.clone().unbind());
                Ok(ArgumentValue::Callback)
            }
            Kind::Scalar(of) => match of {
                Type::String | Type::Filename => {
                    let text = text(object)
                        .map_err(|_| bad(format!("has to be a string, not {}", kind_of(object))))?;
                    let texts = vec![text];
                    self.check_texts(index, *of, &texts)?;
                    Ok(ArgumentValue::Texts(texts))
                }
                of => scalar(*of, object).map(ArgumentValue::Scalar).map_err(&bad),
            },
            Kind::Array { element: of @ (Type::String | Type::Filename), .. } => {
                if object.is_instance_of::<PyString>() || object.is_instance_of::<PyBytes>() {
                    return Err(bad("has to be a list of strings, not one string".into()));
                }
                let items = object.try_iter().map_err(|_| {
                    bad(format!("has to be a list of strings, not {}", kind_of(object)))
                })?;
                let items = items.collect::<PyResult<Vec<_>>>()?;
                let texts = items.iter().map(text).collect::<PyResult<Vec<_>>>();
                let texts = texts.map_err(|_| bad("has to be a list of strings".into()))?;
                self.check_texts(index, *of, &texts)?;
                Ok(ArgumentValue::Texts(texts))
            }
            Kind::Array { element, .. } => {
                if object.is_exact_instance(package::shared(object.py())?) {
                    return Ok(ArgumentValue::Shared(self.shared(object)?));
                }
                let py = object.py();
                if !object.is_exact_instance(package::call(py)?)
                    && !object.is_exact_instance(package::call_output(py)?)
                {
                    return self.array(index, *element, object);
                }
                if parameter.mode != Mode::In {
                    return Err(bad(
                        "is the result of another call, which cannot be changed".into()
                    ));
                }
                let passed = object.call_method1(intern!(py, "_passed"), (self.native,))?;
                let Ok(result) = passed.cast::<Passed>() else {
                    return self.array(index, *element, &passed);
                };
                let result = result.get();
                Ok(result.result().map_or_else(
                    || {
                        self.failed = Some(result.failed());
                        ArgumentValue::Absent
                    },
                    ArgumentValue::Result,
                ))
            }
        }
    }
}

fn kind_of(object: &Bound<'_, PyAny>) -> String {
    object.get_type().name().map_or_else(|_| "that".into(), |name| name.to_string())
}

/// A string as bytes for C; None stays None.
fn text(object: &Bound<'_, PyAny>) -> PyResult<Option<Vec<u8>>> {
    if object.is_none() {
        return Ok(None);
    }
    if let Ok(bytes) = object.cast::<PyBytes>() {
        return Ok(Some(bytes.as_bytes().to_vec()));
    }
    // Paths too: `os.fsencode` accepts both.
    let encoded = object.py().import("os")?.call_method1("fsencode", (object,))?;
    Ok(Some(encoded.extract()?))
}

fn scalar(of: Type, object: &Bound<'_, PyAny>) -> Result<Scalar, String> {
    let wanted = of.idl_name();
    match of {
        Type::SComplex | Type::DComplex => {
            if let Ok(complex) = object.cast::<PyComplex>() {
                return Ok(Scalar::Complex(complex.real(), complex.imag()));
            }
            let complex = object.call_method0("__complex__").ok();
            if let Some(complex) = complex.as_ref().and_then(|found| found.cast::<PyComplex>().ok())
            {
                return Ok(Scalar::Complex(complex.real(), complex.imag()));
            }
            let real =
                if object.is_instance_of::<PyString>() { None } else { object.extract().ok() };
            real.map(|real| Scalar::Complex(real, 0.0))
                .ok_or_else(|| format!("has to be a number, not {}", kind_of(object)))
        }
        Type::Float | Type::Double => {
            if let Ok(float) = object.cast_exact::<PyFloat>() {
                return Ok(Scalar::Float(float.value()));
            }
            // NumPy converts complex numbers to real ones with a mere warning.
            let kind = object.getattr("dtype").and_then(|dtype| dtype.getattr("kind"));
            let is_complex = kind.is_ok_and(|kind| kind.eq("c").unwrap_or(false));
            let refused = is_complex || object.is_instance_of::<PyString>();
            let number = if refused { None } else { object.extract().ok() };
            number
                .map(Scalar::Float)
                .ok_or_else(|| format!("has to be a number ({wanted}), not {}", kind_of(object)))
        }
        _ => {
            if of.is_signed()
                && object.is_exact_instance_of::<PyInt>()
                && let Ok(value) = object.extract()
            {
                return Ok(Scalar::Int(value));
            }
            if matches!(of, Type::Char | Type::UChar)
                && let Some(code) = character(object)
            {
                let code = code?;
                let signed = code.cast_signed().into();
                return Ok(Scalar::Int(if of.is_signed() { signed } else { code.into() }));
            }
            if object.is_instance_of::<PyFloat>() {
                return Err(format!("has to be an integer ({wanted}), not {}", kind_of(object)));
            }
            // Narrower integers are checked together with the sizes.
            let is_wide_unsigned = !of.is_signed() && of.size() == Some(8);
            if let Ok(value) = object.extract::<i64>()
                && (value >= 0 || !is_wide_unsigned)
            {
                return Ok(Scalar::Int(value));
            }
            let unsigned = if of.is_signed() { None } else { object.extract::<u64>().ok() };
            if let Some(value) = unsigned {
                return Ok(Scalar::Int(value.cast_signed()));
            }
            let is_integer = object.getattr("__index__").is_ok();
            Err(if is_integer {
                format!("is {object}, which does not fit in {wanted}")
            } else {
                format!("has to be an integer ({wanted}), not {}", kind_of(object))
            })
        }
    }
}

/// A character, given as text or bytes of length one; `None` if it is neither.
fn character(object: &Bound<'_, PyAny>) -> Option<Result<u8, String>> {
    let bytes = if let Ok(text) = object.cast::<PyString>() {
        text.to_cow().map(|text| text.into_owned().into_bytes()).unwrap_or_default()
    } else {
        object.cast::<PyBytes>().ok()?.as_bytes().to_vec()
    };
    Some(match bytes[..] {
        [byte] => Ok(byte),
        _ => Err("has to be one character, or an integer".into()),
    })
}
