//! Inference requests and responses in gRPC.

use std::time::Duration;

use bytes::Bytes;

use crate::datatype::DataType;
use crate::error::{DataError, InferenceError, MalformedRequest};
use crate::grpc::messages::{
    GrpcInput, ModelInferRequest, ModelInferResponse, ParameterValue, Parameters, TensorContents,
    TensorOutput,
};
use crate::metadata::VERSION;
use crate::name::FunctionName;
use crate::tensor::{
    ElementOrder, InferRequest, InferResponse, InputTensor, RequestedOutput, add_string, datatype,
    unsigned,
};

pub(super) fn request(
    function: FunctionName,
    message: ModelInferRequest,
) -> Result<InferRequest, MalformedRequest> {
    let ModelInferRequest { parameters, inputs, outputs, raw_input_contents, .. } = message;
    if !raw_input_contents.is_empty() && raw_input_contents.len() != inputs.len() {
        let (inputs, raw) = (inputs.len(), raw_input_contents.len());
        return Err(MalformedRequest::RawCount { inputs, raw });
    }
    let mut raw = raw_input_contents.into_iter();
    let mut tensors = Vec::with_capacity(inputs.len());
    for input in inputs {
        let order = order(&input.parameters)?.unwrap_or_default();
        let name = input.name.clone();
        tensors.push(tensor(input, order, raw.next()).map_err(|problem| {
            MalformedRequest::Tensor { name: name.chars().take(100).collect(), problem }
        })?);
    }
    let default_order = order(&parameters)?.unwrap_or_default();
    let mut requested = Vec::with_capacity(outputs.len());
    for output in outputs {
        let order = order(&output.parameters)?.unwrap_or(default_order);
        requested.push(RequestedOutput { name: output.name, order });
    }
    Ok(InferRequest {
        function,
        inputs: tensors,
        outputs: (!requested.is_empty()).then_some(requested),
        order: default_order,
        timeout: timeout(&parameters)?,
        trace: None,
    })
}

fn tensor(
    input: GrpcInput,
    order: ElementOrder,
    raw: Option<Bytes>,
) -> Result<InputTensor, DataError> {
    let datatype = datatype(&input.datatype)?;
    let shape = unsigned(&input.shape)?;
    let data = match (raw, input.contents) {
        (Some(_), Some(contents)) if contents != TensorContents::default() => {
            return Err(DataError::Twice);
        }
        (Some(raw), _) => raw,
        (None, Some(contents)) => elements(contents, datatype)?,
        (None, None) => Bytes::new(),
    };
    InputTensor::new(input.name, datatype, shape, order, data)
}

/// The elements in the field that belongs to the datatype.
fn elements(contents: TensorContents, datatype: DataType) -> Result<Bytes, DataError> {
    let TensorContents { bools, ints, int64s, uints, uint64s, fp32s, fp64s, strings } = contents;
    let misfit =
        |value: i64| DataError::Element { datatype, problem: format!("{value} does not fit") };
    macro_rules! narrowed {
        ($values:expr, $of:ty) => {{
            let mut data = Vec::new();
            for value in $values {
                let narrow = <$of>::try_from(value).map_err(|_| misfit(i64::from(value)))?;
                data.extend_from_slice(&narrow.to_le_bytes());
            }
            data
        }};
    }
    macro_rules! plain {
        ($values:expr) => {
            $values.into_iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>()
        };
    }
    let data = match datatype {
        DataType::Bool => bools.into_iter().map(u8::from).collect(),
        DataType::Int8 => narrowed!(ints, i8),
        DataType::Int16 => narrowed!(ints, i16),
        DataType::Int32 => plain!(ints),
        DataType::Int64 => plain!(int64s),
        DataType::Uint8 => narrowed!(uints, u8),
        DataType::Uint16 => narrowed!(uints, u16),
        DataType::Uint32 => plain!(uints),
        DataType::Uint64 => plain!(uint64s),
        DataType::Fp32 => plain!(fp32s),
        DataType::Fp64 => plain!(fp64s),
        DataType::Fp16 | DataType::Bf16 => return Err(DataError::BinaryOnly(datatype)),
        DataType::Bytes => {
            let mut data = Vec::new();
            for string in strings {
                add_string(&string, &mut data)?;
            }
            data
        }
    };
    Ok(data.into())
}

fn order(parameters: &Parameters) -> Result<Option<ElementOrder>, MalformedRequest> {
    let Some(parameter) = parameters.get("order") else { return Ok(None) };
    let order = match &parameter.value {
        Some(ParameterValue::String(name)) => ElementOrder::from_name(name),
        _ => None,
    };
    order.map(Some).ok_or_else(|| MalformedRequest::Parameter {
        name: "order".into(),
        expected: "has to be \"C\" or \"F\"",
    })
}

fn timeout(parameters: &Parameters) -> Result<Option<Duration>, MalformedRequest> {
    let Some(parameter) = parameters.get("timeout") else { return Ok(None) };
    let us = match parameter.value {
        Some(ParameterValue::Int64(us)) => u64::try_from(us).ok(),
        Some(ParameterValue::Uint64(us)) => Some(us),
        _ => None,
    };
    let us = us.ok_or_else(|| MalformedRequest::Parameter {
        name: "timeout".into(),
        expected: "has to be a number of microseconds",
    })?;
    Ok((us > 0).then(|| Duration::from_micros(us)))
}

pub(super) fn response(
    function: &FunctionName,
    id: String,
    response: InferResponse,
) -> Result<ModelInferResponse, InferenceError> {
    let mut outputs = Vec::with_capacity(response.outputs.len());
    let mut raw_output_contents = Vec::with_capacity(response.outputs.len());
    for output in response.outputs {
        let shape = output.shape.iter().map(|dimension| i64::try_from(*dimension));
        let shape = shape.collect::<Result<_, _>>().map_err(|error| {
            InferenceError::System(format!("the shape of output `{}`: {error}", output.name))
        })?;
        outputs.push(TensorOutput {
            name: output.name,
            datatype: output.datatype.name().to_owned(),
            shape,
        });
        raw_output_contents.push(output.data);
    }
    Ok(ModelInferResponse {
        model_name: function.to_string(),
        model_version: VERSION.to_owned(),
        id,
        outputs,
        raw_output_contents,
    })
}

#[cfg(test)]
mod tests {
    use prost::Message as _;

    use super::*;
    use crate::grpc::messages::InferParameter;

    fn input(datatype: &str, shape: &[i64], contents: Option<TensorContents>) -> GrpcInput {
        GrpcInput {
            name: "x".into(),
            datatype: datatype.into(),
            shape: shape.to_vec(),
            parameters: Parameters::new(),
            contents,
        }
    }

    fn converted(inputs: Vec<GrpcInput>, raw: &[&[u8]]) -> Result<InferRequest, MalformedRequest> {
        let raw_input_contents = raw.iter().map(|data| Bytes::copy_from_slice(data)).collect();
        let message = ModelInferRequest { inputs, raw_input_contents, ..Default::default() };
        request("m/f".parse().unwrap(), message)
    }

    #[test]
    fn typed_contents_become_elements() {
        let contents = TensorContents { ints: vec![-1, 2], ..Default::default() };
        let request = converted(vec![input("INT16", &[2], Some(contents))], &[]).unwrap();
        assert_eq!(request.inputs[0].data, [0xff, 0xff, 2, 0][..]);
        let contents =
            TensorContents { strings: vec![Bytes::from_static(b"ab")], ..Default::default() };
        let request = converted(vec![input("BYTES", &[1], Some(contents))], &[]).unwrap();
        assert_eq!(request.inputs[0].data, b"\x02\0\0\0ab"[..]);
    }

    #[test]
    fn contents_that_do_not_fit_are_refused() {
        let ints =
            |ints: &[i32]| Some(TensorContents { ints: ints.to_vec(), ..Default::default() });
        let cases = [
            (vec![input("INT8", &[1], ints(&[128]))], &[][..]),
            (vec![input("INT8", &[2], ints(&[1]))], &[]),
            (vec![input("INT64", &[1], ints(&[1]))], &[]),
            (vec![input("INT8", &[-1], ints(&[1]))], &[]),
            (vec![input("INT8", &[i64::MAX, i64::MAX], ints(&[1]))], &[]),
            (vec![input("INT9", &[1], ints(&[1]))], &[]),
            (vec![input("FP16", &[1], ints(&[1]))], &[]),
            (vec![input("INT8", &[1], None)], &[]),
            (vec![input("INT8", &[1], ints(&[1]))], &[&[1][..]]),
            (vec![input("INT8", &[1], None)], &[&[1][..], &[1]]),
            (vec![input("INT8", &[1], None), input("INT8", &[1], None)], &[&[1][..]]),
            (vec![input("FP64", &[1], None)], &[&[1][..]]),
        ];
        for (inputs, raw) in cases {
            assert!(converted(inputs.clone(), raw).is_err(), "{inputs:?}");
        }
    }

    #[test]
    fn parameters_have_their_types() {
        for (name, value, is_valid) in [
            ("order", ParameterValue::String("F".into()), true),
            ("order", ParameterValue::String("f".into()), false),
            ("order", ParameterValue::Bool(true), false),
            ("timeout", ParameterValue::Int64(7), true),
            ("timeout", ParameterValue::Int64(-7), false),
            ("timeout", ParameterValue::Double(7.0), false),
            ("anything", ParameterValue::Double(7.0), true),
        ] {
            let parameter = InferParameter { value: Some(value) };
            let parameters = Parameters::from([(name.to_owned(), parameter.clone())]);
            let message = ModelInferRequest { parameters, ..Default::default() };
            let request = request("m/f".parse().unwrap(), message);
            assert_eq!(request.is_ok(), is_valid, "{name}: {parameter:?}");
        }
    }

    #[test]
    fn damaged_messages_do_not_panic() {
        let contents = TensorContents { fp64s: vec![1.0; 3], ..Default::default() };
        let message = ModelInferRequest {
            model_name: "m/f".into(),
            inputs: vec![input("FP64", &[3], Some(contents)), input("INT8", &[2], None)],
            raw_input_contents: vec![Bytes::from_static(b"12"); 2],
            ..Default::default()
        };
        let bytes = message.encode_to_vec();
        let mut decoded = 0;
        for at in 0..bytes.len() {
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                let mut damaged = bytes.clone();
                damaged[at] = value;
                for damaged in [&damaged[..], &damaged[..at]] {
                    if let Ok(message) = ModelInferRequest::decode(damaged) {
                        decoded += 1;
                        let _ = request("m/f".parse().unwrap(), message);
                    }
                }
            }
        }
        assert!(decoded > 0);
    }
}
