//! Metadata of functions as models.

use gridrpc_idl::{Dimension, Expr, Function, Kind, Mode, Parameter, Type, Values};
use gridrpc_typed::dtype;
use serde::Serialize;

use crate::arguments::{is_input, is_output, unsupported};
use crate::datatype::DataType;
use crate::error::InferenceError;
use crate::name::FunctionName;

/// The version of every function: a server offers one at a time.
pub const VERSION: &str = "1";

/// Description of a function.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ModelMetadata {
    /// `module/function`.
    pub name: String,
    /// Its versions.
    pub versions: Vec<String>,
    /// What runs it.
    pub platform: String,
    /// The parameters that carry input.
    pub inputs: Vec<TensorMetadata>,
    /// The parameters that carry output.
    pub outputs: Vec<TensorMetadata>,
    /// Further properties, which only REST has.
    pub parameters: FunctionProperties,
}

/// Properties of a function that the protocol has no field for.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FunctionProperties {
    /// Its declaration.
    pub signature: String,
    /// What it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whether it may run again if a worker is lost.
    pub idempotent: bool,
}

/// Description of a tensor.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TensorMetadata {
    /// Name of the parameter.
    pub name: String,
    /// Type of its elements.
    pub datatype: String,
    /// Its dimensions; -1 for those that depend on other inputs.
    pub shape: Vec<i64>,
    /// Further properties, which only REST has.
    pub parameters: TensorProperties,
}

/// Properties of a tensor that the protocol has no field for.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TensorProperties {
    /// The type in the interface.
    pub r#type: &'static str,
    /// `in`, `out` or `inout`.
    pub mode: &'static str,
    /// The dimensions as expressions of other inputs, without the last one of complex numbers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dimensions: Vec<String>,
    /// Whether the last dimension contains real and imaginary part.
    pub complex: bool,
    /// Storage order of the function; tensors in the other order are transposed.
    pub order: &'static str,
    /// Whether it may be left out because the shapes of other inputs determine it.
    pub optional: bool,
}

impl ModelMetadata {
    /// The metadata of a function.
    ///
    /// # Errors
    /// When the protocol cannot call it.
    pub fn new(name: &FunctionName, function: &Function) -> Result<ModelMetadata, InferenceError> {
        if let Some(reason) = unsupported(function) {
            return Err(InferenceError::Unsupported { function: name.to_string(), reason });
        }
        let tensors = |carries: fn(&Parameter) -> bool| {
            let parameters = function.parameters.iter().enumerate();
            parameters
                .filter(|(_, parameter)| carries(parameter))
                .map(|(index, _)| tensor(function, index))
                .collect()
        };
        Ok(ModelMetadata {
            name: name.to_string(),
            versions: vec![VERSION.to_owned()],
            platform: "gridrpc".to_owned(),
            inputs: tensors(is_input),
            outputs: tensors(is_output),
            parameters: FunctionProperties {
                signature: function.signature(),
                description: function.description.clone(),
                idempotent: function.idempotent,
            },
        })
    }
}

/// Whether the protocol can call a function.
#[must_use]
pub fn is_callable(function: &Function) -> bool {
    unsupported(function).is_none()
}

fn tensor(function: &Function, index: usize) -> TensorMetadata {
    let parameter = &function.parameters[index];
    let (of, dimensions): (Type, &[Dimension]) = match &parameter.kind {
        Kind::Scalar(of) => (*of, &[]),
        Kind::Array { element, dimensions } => (*element, dimensions),
        // They are neither inputs nor outputs.
        Kind::Callback(_) => (Type::String, &[]),
    };
    let (datatype, complex) = dtype(of).map_or((DataType::Bytes, false), DataType::of);
    let is_array = matches!(parameter.kind, Kind::Array { .. });
    let mut shape: Vec<i64> = if is_array {
        dimensions.iter().map(constant_size).collect()
    } else if complex {
        Vec::new()
    } else {
        vec![1]
    };
    if complex {
        shape.push(2);
    }
    let name = |dimension: &Dimension| match &dimension.size {
        Some(size) => size.display(&function.parameters).to_string(),
        None => String::new(),
    };
    TensorMetadata {
        name: parameter.name.clone(),
        datatype: datatype.name().to_owned(),
        shape,
        parameters: TensorProperties {
            r#type: of.idl_name(),
            mode: match parameter.mode {
                Mode::In => "in",
                Mode::Out => "out",
                Mode::InOut => "inout",
                Mode::Work => "work",
            },
            dimensions: dimensions.iter().map(name).collect(),
            complex,
            order: if function.fortran() { "F" } else { "C" },
            optional: is_optional(function, index),
        },
    }
}

/// A dimension that is the same in each call, or -1.
fn constant_size(dimension: &Dimension) -> i64 {
    let size = dimension.size.as_ref();
    size.and_then(|size| size.evaluate(&NoValues).ok()).unwrap_or(-1)
}

struct NoValues;

impl Values for NoValues {
    fn scalar(&self, _: usize) -> Option<i64> {
        None
    }

    fn element(&self, _: usize, _: u64) -> Option<i64> {
        None
    }
}

/// Whether a scalar is exactly the length of a dimension of an input array, from which `prepare` derives it.
fn is_optional(function: &Function, index: usize) -> bool {
    if !matches!(function.parameters[index].kind, Kind::Scalar(of) if of.is_integer()) {
        return false;
    }
    function.parameters.iter().filter(|parameter| parameter.mode.is_input()).any(|parameter| {
        let Kind::Array { element, dimensions } = &parameter.kind else { return false };
        let is_size = |dimension: &Dimension| {
            matches!(dimension.size, Some(Expr::Scalar(scalar)) if scalar == index)
        };
        dtype(*element).is_some() && dimensions.iter().any(is_size)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata(idl: &str) -> Result<ModelMetadata, InferenceError> {
        let module =
            gridrpc_idl::parse(&format!("Module m; Define f({idl}) {{ }}")).module.unwrap();
        ModelMetadata::new(&"m/f".parse().unwrap(), &module.functions[0])
    }

    #[test]
    fn shapes_are_constant_where_the_interface_says_so() {
        let metadata =
            metadata("IN int n, IN double a[n][3], OUT dcomplex z[2], IN scomplex s, IN string t")
                .unwrap();
        let inputs = metadata
            .inputs
            .iter()
            .map(|input| (input.name.as_str(), input.datatype.as_str(), &input.shape[..]));
        let wanted: [(&str, &str, &[i64]); 4] = [
            ("n", "INT32", &[1]),
            ("a", "FP64", &[-1, 3]),
            ("s", "FP32", &[2]),
            ("t", "BYTES", &[1]),
        ];
        assert!(inputs.eq(wanted), "{:?}", metadata.inputs);
        assert_eq!(metadata.outputs[0].shape, [2, 2]);
        assert!(metadata.outputs[0].parameters.complex);
        assert_eq!(metadata.inputs[1].parameters.dimensions, ["n", "3"]);
        assert!(metadata.inputs[0].parameters.optional);
        assert!(!metadata.inputs[1].parameters.optional);
    }

    #[test]
    fn functions_with_callbacks_have_no_metadata() {
        let error = metadata("IN double x, f(IN double x, OUT double y[1])").unwrap_err();
        assert!(matches!(error, InferenceError::Unsupported { .. }), "{error}");
    }
}
