//! Functions of modules as Python sees them: finding them, calling them with arrays in place, and
//! taking their results.

use std::sync::{Arc, Mutex, PoisonError};

use gridrpc_core::{Reservation, Standing};
use gridrpc_idl::{Dimension, Expr, Kind, Mode, Parameter, Type};
use gridrpc_runtime::client::invoke::{
    self, ArgumentError, CallOptions, CallbackFrame, CallbackValue, Given, Landed, Landing,
    Lending, MadeArray, MadeMemory, SearchError,
};
use gridrpc_runtime::client::{self, CallbackHandler, Callbacks};
use gridrpc_runtime::payload::{Incoming, Payload, PayloadBuilder};
use gridrpc_runtime::tool::describe;
use gridrpc_runtime::typed::{Scalar, dtype};
use gridrpc_wire::DType;
use pyo3::exceptions::{PyLookupError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyComplex, PyDict, PyFloat, PyString, PyTuple};

use crate::arrays::ArrayView;
use crate::buffer::Buffer;

/// Where modules are looked for.
#[pyclass(frozen, module = "gridrpc._native")]
pub struct Modules {
    search: invoke::ModuleSearch,
}

#[pymethods]
impl Modules {
    /// Looks in these files and folders, then where the environment and the catalogue say.
    #[new]
    fn new(places: Vec<String>) -> Modules {
        let mut all: Vec<std::path::PathBuf> = places.into_iter().map(Into::into).collect();
        all.extend(gridrpc_runtime::tool::catalogue::default_places());
        Modules { search: invoke::ModuleSearch::new(all) }
    }

    /// Names and files of all modules that are there.
    fn all(&self) -> Vec<(String, String)> {
        let name = |module: &Arc<gridrpc_runtime::typed::ModuleFile>| {
            (module.interface.name.clone(), module.path.display().to_string())
        };
        self.search.all().iter().map(name).collect()
    }

    /// The methods of a class `module/Class`, by name.
    fn methods(&self, name: &str) -> PyResult<Vec<String>> {
        let (module, class) = self.search.resolve(name).map_err(not_found)?;
        let class = module.interface.class(class).ok_or_else(|| {
            let known = module.interface.classes.iter().map(|class| class.name.as_str());
            let known = known.collect::<Vec<_>>().join(", ");
            let module = &module.interface.name;
            PyLookupError::new_err(format!(
                "module `{module}` has no class `{class}`; its classes are: {known}"
            ))
        })?;
        Ok(class.methods.iter().map(|method| method.name.clone()).collect())
    }
}

fn not_found(error: SearchError) -> PyErr {
    match error {
        SearchError::Name(_) => PyValueError::new_err(error.to_string()),
        _ => PyLookupError::new_err(error.to_string()),
    }
}

/// A function of a module, known to a grid.
#[pyclass(frozen, module = "gridrpc._native")]
pub struct Target {
    pub target: Arc<invoke::Target>,
    /// Which parameters a caller passes, and whether they may be left out.
    passed: Vec<(usize, bool)>,
}

#[pymethods]
impl Target {
    /// `module/function`.
    #[getter]
    fn name(&self) -> &str {
        &self.target.name
    }

    /// What it is, for programs, as JSON.
    #[getter]
    fn description(&self) -> String {
        describe::json_of_function(self.target.interface()).to_string()
    }

    /// The parameters that a caller passes, in order, and whether each may be left out.
    #[getter]
    fn passed(&self) -> Vec<(String, bool)> {
        let parameters = &self.target.interface().parameters;
        self.passed.iter().map(|(at, left_out)| (parameters[*at].name.clone(), *left_out)).collect()
    }

    /// The parameters that come back, in order.
    #[getter]
    fn returned(&self) -> Vec<String> {
        let parameters = self.target.interface().parameters.iter();
        parameters.filter(|p| is_returned(p)).map(|p| p.name.clone()).collect()
    }
}

/// Whether a parameter is among what a call returns: results that the caller does not pass, and
/// strings that are changed, as Python's own stay what they are.
fn is_returned(parameter: &Parameter) -> bool {
    match parameter.mode {
        Mode::Out => !is_of(parameter, Type::Filename),
        Mode::InOut => is_of(parameter, Type::String),
        Mode::In | Mode::Work => false,
    }
}

/// Whether a caller passes a parameter: what goes in, and the names of files that come back.
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
    pub fn find(grid: &client::Grid, modules: &Modules, name: &str) -> PyResult<Target> {
        let (module, function) = modules.search.resolve(name).map_err(not_found)?;
        let target = Arc::new(grid.target(&module, function).map_err(not_found)?);
        let parameters = &target.interface().parameters;
        let passed = parameters.iter().enumerate().filter(|(_, parameter)| is_passed(parameter));
        let passed = passed.map(|(at, _)| (at, is_derived(parameters, at))).collect();
        Ok(Target { target, passed })
    }

    fn parameter(&self, index: usize) -> &Parameter {
        &self.target.interface().parameters[index]
    }

    fn bad(&self, parameter: &str, problem: impl Into<String>) -> PyErr {
        argument_error(&ArgumentError {
            function: self.target.name.clone(),
            parameter: parameter.to_owned(),
            problem: problem.into(),
        })
    }

    /// Which object is given for which parameter.
    fn assign<'py>(
        &self,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Vec<Option<Bound<'py, PyAny>>>> {
        let mut given = vec![None; self.target.interface().parameters.len()];
        let needed = self.passed.iter().filter(|(_, left_out)| !left_out).count();
        let all = args.len() > needed;
        let mut places = self.passed.iter().filter(|(_, left_out)| all || !left_out);
        if args.len() > self.passed.len() {
            let (most, got) = (self.passed.len(), args.len());
            return Err(self.bad("", format!("takes {most} arguments, but {got} are given")));
        }
        for value in args.iter() {
            let Some((place, _)) = places.next() else { break };
            given[*place] = Some(value);
        }
        for (name, value) in kwargs.into_iter().flatten() {
            let name: String = name.extract()?;
            let place = self.passed.iter().find(|(place, _)| self.parameter(*place).name == name);
            let Some((place, _)) = place else {
                return Err(self.bad(&name, "is not one of its arguments"));
            };
            if given[*place].replace(value).is_some() {
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

/// The package's own error for an argument that does not fit.
pub fn argument_error(error: &ArgumentError) -> PyErr {
    Python::attach(|py| {
        static KIND: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let made = KIND
            .import(py, "gridrpc.errors", "ArgumentError")
            .and_then(|kind| kind.call1((error.to_string(), &error.function, &error.parameter)));
        made.map_or_else(|error| error, PyErr::from_value)
    })
}

/// What has to be kept of a call until its results are where they belong.
pub struct Pending {
    landing: Landing,
    target: Arc<invoke::Target>,
    /// Held in place until then; dropped behind the landing.
    _views: Vec<ArrayView>,
    /// Arrays that the caller gave for results, by parameter.
    outs: Vec<(usize, Py<PyAny>)>,
    raised: Option<Arc<Mutex<Option<PyErr>>>>,
}

/// A request, and what to do with its results.
pub struct Made {
    pub request: client::Request,
    pub pending: Pending,
}

/// Puts a call together.
pub fn make(
    py: Python<'_>,
    grid: &Arc<client::Grid>,
    target: &Target,
    args: &Bound<'_, PyTuple>,
    kwargs: Option<&Bound<'_, PyDict>>,
    out: Option<&Bound<'_, PyAny>>,
    options: CallOptions,
) -> PyResult<Made> {
    let interface = target.target.interface();
    let mut objects = target.assign(args, kwargs)?;
    let outs = assign_out(target, out, &mut objects)?;
    let mut arguments = Arguments { target, views: Vec::new(), callbacks: Vec::new() };
    let mut given = Vec::with_capacity(objects.len());
    for (index, object) in objects.iter().enumerate() {
        given.push(match object {
            None if matches!(interface.parameters[index].kind, Kind::Callback(_)) => {
                let problem = "is missing: give a function to call back";
                return Err(target.bad(&interface.parameters[index].name, problem));
            }
            None => Given::Absent,
            Some(object) => arguments.take(index, object)?,
        });
    }
    let Arguments { views, callbacks, .. } = arguments;
    // SAFETY: the views hold the arrays in place, with their lengths; they outlive the landing.
    // Python code that changes an array while it is on its way changes what is sent, as it would
    // for any other call.
    let prepared = unsafe {
        let (grid, target) = (&**grid, &*target.target);
        let much = views.iter().map(ArrayView::len).sum::<usize>() > MUCH;
        let given = SendGiven(given);
        let prepare = move || {
            let given = given;
            invoke::prepare(grid, target, &given.0, Lending::UntilLanded)
        };
        if much { py.detach(prepare) } else { prepare() }
    };
    let prepared = prepared.map_err(|error| argument_error(&error))?;
    let mut options = options;
    let mut raised = None;
    if !callbacks.is_empty() {
        let frame = CallbackFrame::new(Arc::clone(&target.target), prepared.scalars.clone());
        let handler = PythonCallbacks {
            grid: Arc::clone(grid),
            frame,
            callbacks,
            fortran: interface.fortran(),
            raised: Arc::default(),
        };
        raised = Some(Arc::clone(&handler.raised));
        options.callbacks = Some(Callbacks(Arc::new(handler)));
    }
    let (request, landing) = prepared.request(&target.target, options);
    let pending =
        Pending { landing, target: Arc::clone(&target.target), _views: views, outs, raised };
    Ok(Made { request, pending })
}

/// More than so many bytes are copied without the interpreter's lock.
const MUCH: usize = 64 << 10;

struct SendGiven(Vec<Given>);

// SAFETY: the pointers are to arrays that are held by views.
unsafe impl Send for SendGiven {}

/// `out=`: one array, several in order, or by name.
fn assign_out<'py>(
    target: &Target,
    out: Option<&Bound<'py, PyAny>>,
    objects: &mut [Option<Bound<'py, PyAny>>],
) -> PyResult<Vec<(usize, Py<PyAny>)>> {
    let Some(out) = out else { return Ok(Vec::new()) };
    let parameters = &target.target.interface().parameters;
    let is_array =
        |p: &Parameter| matches!(&p.kind, Kind::Array { element, .. } if dtype(*element).is_some());
    let results = parameters.iter().enumerate().filter(|(_, p)| is_returned(p) && is_array(p));
    let results: Vec<usize> = results.map(|(index, _)| index).collect();
    let mut assigned: Vec<(usize, Bound<'py, PyAny>)> = Vec::new();
    if let Ok(named) = out.cast::<PyDict>() {
        for (name, array) in named {
            let name: String = name.extract()?;
            let found = results.iter().find(|index| parameters[**index].name == name);
            let index = found.ok_or_else(|| target.bad(&name, "is not one of its results"))?;
            assigned.push((*index, array));
        }
    } else if let Ok(several) = out.cast::<PyTuple>() {
        if several.len() != results.len() {
            let (wanted, got) = (results.len(), several.len());
            return Err(target.bad("out", format!("has {got} arrays for {wanted} results")));
        }
        assigned.extend(results.iter().copied().zip(several.iter()));
    } else if results.len() == 1 {
        assigned.push((results[0], out.clone()));
    } else {
        let wanted = results.len();
        return Err(target.bad("out", format!("has to be a tuple of {wanted} arrays")));
    }
    let mut outs = Vec::new();
    for (index, array) in assigned {
        if !array.is_none() {
            outs.push((index, array.clone().unbind()));
            objects[index] = Some(array);
        }
    }
    Ok(outs)
}

struct Arguments<'t> {
    target: &'t Target,
    views: Vec<ArrayView>,
    callbacks: Vec<Py<PyAny>>,
}

impl Arguments<'_> {
    /// C would see the front of a text with a zero byte in it only.
    fn check_texts(&self, index: usize, texts: &[Option<Vec<u8>>]) -> PyResult<()> {
        if texts.iter().flatten().any(|text| text.contains(&0)) {
            let problem = "has a zero byte in it, at which C would end it";
            return Err(self.target.bad(&self.target.parameter(index).name, problem));
        }
        Ok(())
    }

    fn take(&mut self, index: usize, object: &Bound<'_, PyAny>) -> PyResult<Given> {
        let parameter = self.target.parameter(index);
        let bad = |problem: String| self.target.bad(&parameter.name, problem);
        match &parameter.kind {
            Kind::Callback(_) => {
                if !object.is_callable() {
                    return Err(bad(format!("has to be callable, not {}", kind_of(object))));
                }
                self.callbacks.push(object.clone().unbind());
                Ok(Given::Callback)
            }
            Kind::Scalar(of) => match of {
                Type::String | Type::Filename => {
                    let text = text(object)
                        .map_err(|_| bad(format!("has to be a string, not {}", kind_of(object))))?;
                    let texts = vec![text];
                    self.check_texts(index, &texts)?;
                    Ok(Given::Texts(texts))
                }
                of => scalar(*of, object).map(Given::Scalar).map_err(&bad),
            },
            Kind::Array { element: Type::String | Type::Filename, .. } => {
                if object.is_instance_of::<PyString>() || object.is_instance_of::<PyBytes>() {
                    return Err(bad("has to be a list of strings, not one string".into()));
                }
                let items = object.try_iter().map_err(|_| {
                    bad(format!("has to be a list of strings, not {}", kind_of(object)))
                })?;
                let items = items.collect::<PyResult<Vec<_>>>()?;
                let texts = items.iter().map(text).collect::<PyResult<Vec<_>>>();
                let texts = texts.map_err(|_| bad("has to be a list of strings".into()))?;
                self.check_texts(index, &texts)?;
                Ok(Given::Texts(texts))
            }
            Kind::Array { element, .. } => {
                let writable = parameter.mode != Mode::In;
                let fortran = self.target.target.interface().fortran();
                let view = ArrayView::of_argument(object, *element, fortran, writable);
                let view = view.map_err(&bad)?;
                let memory = view.memory();
                self.views.push(view);
                Ok(Given::Array(memory))
            }
        }
    }
}

fn kind_of(object: &Bound<'_, PyAny>) -> String {
    object.get_type().name().map_or_else(|_| "that".into(), |name| name.to_string())
}

/// A string as the bytes that C sees; None stays None.
fn text(object: &Bound<'_, PyAny>) -> PyResult<Option<Vec<u8>>> {
    if object.is_none() {
        return Ok(None);
    }
    if let Ok(bytes) = object.cast::<PyBytes>() {
        return Ok(Some(bytes.as_bytes().to_vec()));
    }
    // Paths as well: `os.fsencode` takes both.
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
            // NumPy makes real numbers of its complex ones, with a warning.
            let kind = object.getattr("dtype").and_then(|dtype| dtype.getattr("kind"));
            let is_complex = kind.is_ok_and(|kind| kind.eq("c").unwrap_or(false));
            let refused = is_complex || object.is_instance_of::<PyString>();
            let number = if refused { None } else { object.extract().ok() };
            number
                .map(Scalar::Float)
                .ok_or_else(|| format!("has to be a number ({wanted}), not {}", kind_of(object)))
        }
        _ => {
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
            // What fits in fewer bits is checked with the sizes.
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

impl Pending {
    /// What the call returns: nothing, one result, or several as a tuple that names them.
    pub fn take(self, py: Python<'_>, sections: Vec<Incoming>) -> PyResult<Py<PyAny>> {
        let Pending { landing, target, _views, outs, .. } = self;
        let landed = py.detach(|| landing.land(sections)).map_err(PyValueError::new_err)?;
        let mut landed: Vec<(usize, Option<Landed>)> =
            landed.into_iter().map(|(index, landed)| (index, Some(landed))).collect();
        let mut results = Vec::new();
        let mut names = Vec::new();
        for (index, parameter) in target.interface().parameters.iter().enumerate() {
            if !is_returned(parameter) {
                continue;
            }
            names.push(parameter.name.as_str());
            if let Some((_, array)) = outs.iter().find(|(place, _)| *place == index) {
                results.push(array.bind(py).clone());
                continue;
            }
            let found = landed.iter_mut().find(|(place, _)| *place == index);
            let found = found.and_then(|(_, landed)| landed.take());
            results.push(match found {
                Some(Landed::Array(array)) => to_numpy(py, array, target.interface().fortran())?,
                Some(Landed::Texts(texts)) => texts_to_python(py, parameter, texts)?,
                None => py.None().into_bound(py),
            });
        }
        match results.len() {
            0 => Ok(py.None()),
            1 => Ok(results.remove(0).unbind()),
            _ => {
                static NAMED: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
                let named = NAMED.import(py, "gridrpc._modules", "named_results")?;
                Ok(named.call1((&target.name, names, results))?.unbind())
            }
        }
    }

    /// What a callback of the call has raised.
    pub fn raised(&self) -> Option<PyErr> {
        let raised = self.raised.as_ref()?;
        raised.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

fn numpy_array<'py>(
    py: Python<'py>,
    dimensions: &[u64],
    dtype: DType,
    fortran: bool,
    buffer: Buffer,
) -> PyResult<Bound<'py, PyAny>> {
    static NDARRAY: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let ndarray = NDARRAY.import(py, "numpy", "ndarray")?;
    let named = PyDict::new(py);
    named.set_item("order", if fortran { "F" } else { "C" })?;
    let buffer = Bound::new(py, buffer)?;
    ndarray.call((PyTuple::new(py, dimensions)?, dtype.name(), buffer), Some(&named))
}

fn to_numpy<'py>(py: Python<'py>, array: MadeArray, fortran: bool) -> PyResult<Bound<'py, PyAny>> {
    let buffer = match array.memory {
        MadeMemory::Shared(shared) => Buffer::of_array(shared),
        MadeMemory::Came(section) => Buffer::new(section, false),
    };
    numpy_array(py, &array.dimensions, array.dtype, fortran, buffer)
}

fn texts_to_python<'py>(
    py: Python<'py>,
    parameter: &Parameter,
    texts: Vec<Option<Vec<u8>>>,
) -> PyResult<Bound<'py, PyAny>> {
    let os = py.import("os")?;
    let decode = |text: Option<Vec<u8>>| match text {
        None => Ok(py.None().into_bound(py)),
        Some(text) => os.call_method1("fsdecode", (PyBytes::new(py, &text),)),
    };
    let mut texts = texts.into_iter().map(decode).collect::<PyResult<Vec<_>>>()?;
    match parameter.kind {
        Kind::Scalar(_) if texts.len() == 1 => Ok(texts.remove(0)),
        _ => Ok(texts.into_pyobject(py)?.into_any()),
    }
}

/// Python functions that a running function calls back.
struct PythonCallbacks {
    grid: Arc<client::Grid>,
    frame: CallbackFrame,
    callbacks: Vec<Py<PyAny>>,
    /// Whether the first index of arrays runs fastest.
    fortran: bool,
    /// The first error that one of them has raised.
    raised: Arc<Mutex<Option<PyErr>>>,
}

impl CallbackHandler for PythonCallbacks {
    fn run(&self, index: u16, arguments: Vec<Incoming>) -> Result<Payload, String> {
        let payload: PayloadBuilder<'_> = self.grid.payload();
        self.frame.run(index, arguments, payload, |parameters, values| {
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
    /// Arrays are NumPy arrays; OUT and INOUT ones are to be changed in place.
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

/// A worker that works for one remote object.
#[pyclass(frozen, module = "gridrpc._native")]
pub struct Reserved {
    pub reservation: Reservation,
}

/// How a reserved worker is getting on, as text, and how it was lost.
pub fn standing(of: Standing) -> (&'static str, String) {
    match of {
        Standing::Starting => ("starting", String::new()),
        Standing::Ready => ("ready", String::new()),
        Standing::Lost(loss) => ("lost", loss.to_string()),
        Standing::Released => ("released", String::new()),
    }
}

/// Shared memory for an array: `gridrpc.empty`.
#[pyfunction]
pub fn shared_memory(py: Python<'_>, len: usize) -> PyResult<Buffer> {
    let array = py.detach(|| client::SharedArray::new(len))?;
    Ok(Buffer::of_array(array))
}
