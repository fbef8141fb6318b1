//! Example calls of a function in C, Fortran, Python and curl, made from its interface. Integers are 2, other numbers 1.

use std::fmt::Write as _;

use gridrpc_idl::{Function, Kind, Mode, Parameter, Type, Values, extents};
use gridrpc_inference::{FunctionName, ModelMetadata};
use serde_json::{Value, json};

/// The value of all integers.
const INTEGER: i64 = 2;
/// Most elements of an array in a request.
const MOST_ELEMENTS: i64 = 64;

/// The parameters have these values.
struct Sample;

impl Values for Sample {
    fn scalar(&self, _: usize) -> Option<i64> {
        Some(INTEGER)
    }

    fn element(&self, _: usize, _: u64) -> Option<i64> {
        Some(INTEGER)
    }
}

/// Number of elements in each dimension of an array; none: it cannot be computed.
fn sizes(function: &Function, index: usize) -> Option<Vec<u64>> {
    let extents = extents(function, index, &Sample).ok()?;
    Some(extents.iter().map(|extent| extent.size).collect())
}

/// A call in C. `server`: the URL of a server.
pub fn in_c(name: &str, function: &Function, server: &str) -> String {
    let mut text = String::from("grpc_function_handle_t function;\n");
    for (index, parameter) in function.parameters.iter().enumerate() {
        let own = &parameter.name;
        let line = match &parameter.kind {
            Kind::Scalar(of) => {
                format!("{} {own} = {};", of.c_name().trim_end(), c_value(*of))
            }
            Kind::Array { element, .. } => {
                let sizes = sizes(function, index).unwrap_or_default();
                // C arrays are passed by their first elements, whatever the order of dimensions is.
                let count: u64 = sizes.iter().product();
                format!("{} {own}[{}];", element.c_name().trim_end(), count.max(1))
            }
            Kind::Callback(_) => format!("/* {own}: a function that the server calls back */"),
        };
        let _ = writeln!(text, "{line}");
    }
    let arguments: String =
        function.parameters.iter().map(|parameter| format!(", {}", parameter.name)).collect();
    let _ = write!(
        text,
        "\ngrpc_initialize(NULL);\ngrpc_function_handle_init(&function, \"{server}\", \"{name}\");\n\
         grpc_call(&function{arguments});\ngrpc_finalize();\n"
    );
    text
}

fn c_value(of: Type) -> &'static str {
    match of {
        Type::String | Type::Filename => "\"text\"",
        of if of.is_integer() => "2",
        _ => "1",
    }
}

/// A call in Fortran.
pub fn in_fortran(name: &str, function: &Function, server: &str) -> String {
    let mut text = String::from(
        "use grpc\ntype(grpc_function_handle_t) :: function\ninteger(grpc_error_t) :: error\n",
    );
    for (index, parameter) in function.parameters.iter().enumerate() {
        let own = &parameter.name;
        let line = match &parameter.kind {
            Kind::Scalar(of) => format!("{} :: {own} = {}", fortran_type(*of), fortran_value(*of)),
            Kind::Array { element, .. } => {
                let mut sizes = sizes(function, index).unwrap_or_default();
                if !function.fortran() {
                    // The first index varies fastest here, the last one in C.
                    sizes.reverse();
                }
                let sizes: Vec<String> =
                    sizes.iter().map(|size| size.max(&1).to_string()).collect();
                format!("{} :: {own}({})", fortran_type(*element), sizes.join(", "))
            }
            Kind::Callback(_) => format!("external {own}  ! the server calls it back"),
        };
        let _ = writeln!(text, "{line}");
    }
    let arguments: String =
        function.parameters.iter().map(|parameter| format!(", {}", parameter.name)).collect();
    let _ = write!(
        text,
        "\nerror = grpc_initialize()\nerror = grpc_function_handle_init(function, '{server}', '{name}')\n\
         error = grpc_call(function{arguments})\nerror = grpc_finalize()\n"
    );
    text
}

fn fortran_type(of: Type) -> &'static str {
    match of {
        Type::String | Type::Filename => "character(len=80)",
        Type::Float => "real",
        Type::Double => "double precision",
        Type::SComplex => "complex",
        Type::DComplex => "complex(kind(1d0))",
        of => match of.size() {
            Some(1) => "integer(1)",
            Some(2) => "integer(2)",
            Some(8) => "integer(8)",
            _ => "integer",
        },
    }
}

fn fortran_value(of: Type) -> &'static str {
    match of {
        Type::String | Type::Filename => "'text'",
        of if of.is_integer() => "2",
        _ => "1",
    }
}

/// A call in Python.
pub fn in_python(name: &str, function: &Function, server: &str) -> String {
    let mut text = String::from("import numpy as np\n\nimport gridrpc\n\n");
    let is_passed = |parameter: &&Parameter| matches!(parameter.mode, Mode::In | Mode::InOut);
    for (index, parameter) in function.parameters.iter().enumerate() {
        if !is_passed(&parameter) {
            continue;
        }
        let own = &parameter.name;
        let line = match &parameter.kind {
            Kind::Scalar(of) => format!("{own} = {}", python_value(*of)),
            Kind::Array { element: Type::String | Type::Filename, .. } => {
                format!("{own} = [\"text\"]")
            }
            Kind::Array { element, .. } => {
                let sizes = sizes(function, index).unwrap_or_default();
                let sizes: Vec<String> = sizes.iter().map(ToString::to_string).collect();
                let order =
                    if function.fortran() && sizes.len() > 1 { ", order=\"F\"" } else { "" };
                format!("{own} = np.ones([{}], {}{order})", sizes.join(", "), numpy_type(*element))
            }
            Kind::Callback(_) => format!("{own} = print  # the server calls it back"),
        };
        let _ = writeln!(text, "{line}");
    }
    let passed = function.parameters.iter().filter(is_passed);
    let passed: Vec<String> = passed.map(|one| format!("{0}={0}", one.name)).collect();
    let returns = function.parameters.iter().any(|parameter| parameter.mode == Mode::Out);
    let result = if returns { "result = " } else { "" };
    let _ = write!(
        text,
        "\nwith gridrpc.Grid(servers=[\"{server}\"]) as grid:\n    {result}grid.function(\"{name}\")({})\n",
        passed.join(", ")
    );
    text
}

fn python_value(of: Type) -> &'static str {
    match of {
        Type::String | Type::Filename => "\"text\"",
        of if of.is_integer() => "2",
        _ => "1.0",
    }
}

fn numpy_type(of: Type) -> String {
    match of {
        Type::Float => "np.float32".into(),
        Type::Double => "np.float64".into(),
        Type::SComplex => "np.complex64".into(),
        Type::DComplex => "np.complex128".into(),
        of => {
            let sign = if of.is_signed() { "" } else { "u" };
            format!("np.{sign}int{}", 8 * of.size().unwrap_or(8))
        }
    }
}

/// A call by curl. `http`: the URL of the server's Open Inference Protocol. None: the protocol cannot call the function.
pub fn by_curl(name: &str, function: &Function, http: &str) -> Option<String> {
    let (module, own) = name.split_once('/')?;
    let metadata = ModelMetadata::new(&FunctionName::new(module, own).ok()?, function).ok()?;
    let inputs: Vec<Value> = metadata
        .inputs
        .iter()
        .map(|input| {
            let shape: Vec<i64> = if input.shape.contains(&-1) {
                let index = function.parameters.iter().position(|one| one.name == input.name);
                let sizes = index.and_then(|index| sizes(function, index)).unwrap_or_default();
                let complex = input.parameters.complex.then_some(2);
                sizes
                    .iter()
                    .map(|size| i64::try_from(*size).unwrap_or(i64::MAX))
                    .chain(complex)
                    .collect()
            } else {
                input.shape.clone()
            };
            let count = shape.iter().product::<i64>().clamp(0, MOST_ELEMENTS);
            let element = match input.datatype.as_str() {
                "BYTES" => json!("text"),
                datatype if datatype.starts_with("FP") => json!(1.0),
                _ => json!(INTEGER),
            };
            json!({
                "name": input.name, "datatype": input.datatype, "shape": shape,
                "data": (0..count).map(|_| element.clone()).collect::<Vec<_>>(),
            })
        })
        .collect();
    let body = json!({ "inputs": inputs });
    Some(format!(
        "curl --cert certificate.pem --key key.pem --cacert authority.pem \\\n    -d '{body}' \\\n    \
         {http}/v2/models/{name}/infer\n"
    ))
}
