//! Inference requests in REST: JSON, with binary data behind it.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::Read;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::datatype::DataType;
use crate::error::{DataError, InferenceError, MalformedRequest};
use crate::name::FunctionName;
use crate::rest::json;
use crate::tensor::{
    ElementOrder, InferRequest, InputTensor, RequestedOutput, count, datatype, trace_context,
};

/// Header with the length of the JSON in front of binary data.
pub(super) const JSON_LENGTH: &str = "inference-header-content-length";

type Parameters = HashMap<String, Value>;

#[derive(Deserialize)]
struct JsonRequest<'a> {
    #[serde(borrow, default)]
    id: Cow<'a, str>,
    #[serde(default)]
    parameters: Parameters,
    #[serde(borrow)]
    inputs: Vec<JsonInput<'a>>,
    #[serde(default)]
    outputs: Option<Vec<JsonOutput>>,
}

#[derive(Deserialize)]
struct JsonInput<'a> {
    name: String,
    shape: Vec<u64>,
    datatype: String,
    #[serde(default)]
    parameters: Parameters,
    #[serde(borrow, default)]
    data: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct JsonOutput {
    name: String,
    #[serde(default)]
    parameters: Parameters,
}

/// How to encode a body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Compression {
    #[default]
    None,
    Gzip,
    Deflate,
}

impl Compression {
    /// The first encoding that the other end accepts.
    pub(super) fn accepted(headers: &HeaderMap) -> Compression {
        let value = headers.get(ACCEPT_ENCODING).and_then(|value| value.to_str().ok());
        let mut encodings = value.unwrap_or_default().split(',').map(|encoding| {
            let mut parts = encoding.split(';').map(str::trim);
            let name = parts.next().unwrap_or_default();
            (name, parts.any(|part| matches!(part, "q=0" | "q=0.0")))
        });
        let known = encodings.find_map(|(name, refused)| match name {
            "gzip" if !refused => Some(Compression::Gzip),
            "deflate" if !refused => Some(Compression::Deflate),
            _ => None,
        });
        known.unwrap_or_default()
    }
}

/// How to encode a response.
#[derive(Clone, Debug, Default)]
pub(super) struct ResponseForm {
    /// The id of the request.
    pub(super) id: String,
    /// Whether outputs that are not listed are binary.
    pub(super) binary: bool,
    /// The same for listed outputs.
    pub(super) outputs: Vec<(String, bool)>,
    pub(super) compression: Compression,
}

/// Reads a request. `limit`: for its decompressed body, bytes.
pub(super) fn read(
    function: FunctionName,
    headers: &HeaderMap,
    body: Bytes,
    limit: usize,
) -> Result<(InferRequest, ResponseForm), InferenceError> {
    let body = decompress(headers, body, limit)?;
    let json_length = match headers.get(JSON_LENGTH) {
        None => body.len(),
        Some(value) => {
            let length = value.to_str().ok().and_then(|text| text.trim().parse().ok());
            length.ok_or_else(|| MalformedRequest::Header {
                name: "Inference-Header-Content-Length",
                value: String::from_utf8_lossy(value.as_bytes()).chars().take(40).collect(),
            })?
        }
    };
    if json_length > body.len() {
        return Err(MalformedRequest::HeaderLength { header: json_length, body: body.len() }.into());
    }
    let binary = body.slice(json_length..);
    let request: JsonRequest<'_> =
        serde_json::from_slice(&body[..json_length]).map_err(MalformedRequest::Json)?;
    let inputs = inputs(request.inputs, binary)?;
    let by_default = flag(&request.parameters, "binary_data_output")?.unwrap_or(false);
    let default_order = order(&request.parameters)?.unwrap_or_default();
    let mut form = ResponseForm {
        id: request.id.into_owned(),
        binary: by_default,
        outputs: Vec::new(),
        compression: Compression::accepted(headers),
    };
    let outputs = match request.outputs {
        // As if it were left out.
        Some(outputs) if !outputs.is_empty() => {
            let mut requested = Vec::new();
            for JsonOutput { name, parameters } in outputs {
                let binary = flag(&parameters, "binary_data")?.unwrap_or(by_default);
                form.outputs.push((name.clone(), binary));
                let order = order(&parameters)?.unwrap_or(default_order);
                requested.push(RequestedOutput { name, order });
            }
            Some(requested)
        }
        _ => None,
    };
    let timeout = timeout(&request.parameters)?;
    let (order, trace) = (default_order, trace_context(headers));
    Ok((InferRequest { function, inputs, outputs, order, timeout, trace }, form))
}

fn inputs(inputs: Vec<JsonInput<'_>>, binary: Bytes) -> Result<Vec<InputTensor>, MalformedRequest> {
    let found = binary.len() as u64;
    let mut rest = binary;
    let mut declared: u64 = 0;
    let mut tensors = Vec::with_capacity(inputs.len());
    for input in inputs {
        let JsonInput { name, shape, datatype: type_name, parameters, data } = input;
        let order = order(&parameters)?.unwrap_or_default();
        let size = match parameters.get("binary_data_size") {
            None => None,
            Some(size) => Some(size.as_u64().ok_or_else(|| MalformedRequest::Parameter {
                name: "binary_data_size".into(),
                expected: "has to be a number of bytes",
            })?),
        };
        let raw = match size {
            None => None,
            Some(size) => {
                declared = declared.saturating_add(size);
                let size = usize::try_from(size).ok().filter(|size| *size <= rest.len());
                let size = size.ok_or(MalformedRequest::BinaryLength { declared, found })?;
                Some(rest.split_to(size))
            }
        };
        let tensor = |name: String| -> Result<InputTensor, DataError> {
            let datatype = datatype(&type_name)?;
            let data = match (raw, data) {
                (Some(raw), None) => raw,
                (None, Some(data)) => elements(data, datatype, &shape)?,
                (None, None) => return Err(DataError::Missing),
                (Some(_), Some(_)) => return Err(DataError::Twice),
            };
            InputTensor::new(name, datatype, shape, order, data)
        };
        tensors.push(tensor(name.clone()).map_err(|problem| MalformedRequest::Tensor {
            name: name.chars().take(100).collect(),
            problem,
        })?);
    }
    if !rest.is_empty() {
        return Err(MalformedRequest::BinaryLength { declared, found });
    }
    Ok(tensors)
}

fn elements(data: &RawValue, datatype: DataType, shape: &[u64]) -> Result<Bytes, DataError> {
    let expected = count(shape)?;
    let elements = json::decode(data, datatype, expected)?;
    // For numbers, count elements rather than bytes in the message.
    if let Some(size) = datatype.size() {
        let found = (elements.len() / size) as u64;
        if found != expected {
            return Err(DataError::Count { shape: shape.to_vec(), expected, found });
        }
    }
    Ok(elements)
}

fn flag(parameters: &Parameters, name: &str) -> Result<Option<bool>, MalformedRequest> {
    let Some(value) = parameters.get(name) else { return Ok(None) };
    match value.as_bool() {
        Some(flag) => Ok(Some(flag)),
        None => Err(MalformedRequest::Parameter {
            name: name.to_owned(),
            expected: "has to be true or false",
        }),
    }
}

fn order(parameters: &Parameters) -> Result<Option<ElementOrder>, MalformedRequest> {
    let Some(value) = parameters.get("order") else { return Ok(None) };
    let order = value.as_str().and_then(ElementOrder::from_name);
    order.map(Some).ok_or_else(|| MalformedRequest::Parameter {
        name: "order".into(),
        expected: "has to be \"C\" or \"F\"",
    })
}

fn timeout(parameters: &Parameters) -> Result<Option<Duration>, MalformedRequest> {
    let Some(value) = parameters.get("timeout") else { return Ok(None) };
    let us = value.as_u64().ok_or_else(|| MalformedRequest::Parameter {
        name: "timeout".into(),
        expected: "has to be a number of microseconds",
    })?;
    // As for Triton, 0 means none.
    Ok((us > 0).then(|| Duration::from_micros(us)))
}

fn decompress(headers: &HeaderMap, body: Bytes, limit: usize) -> Result<Bytes, InferenceError> {
    let Some(encoding) = headers.get(CONTENT_ENCODING) else { return Ok(body) };
    let problem = |problem: String| MalformedRequest::Encoding {
        encoding: String::from_utf8_lossy(encoding.as_bytes()).chars().take(40).collect(),
        problem,
    };
    let mut decompressed = Vec::new();
    let most = (limit as u64).saturating_add(1);
    let read = match encoding.as_bytes() {
        b"identity" => return Ok(body),
        b"gzip" => {
            flate2::read::MultiGzDecoder::new(&body[..]).take(most).read_to_end(&mut decompressed)
        }
        b"deflate" => {
            flate2::read::ZlibDecoder::new(&body[..]).take(most).read_to_end(&mut decompressed)
        }
        _ => return Err(problem("use gzip or deflate".into()).into()),
    };
    read.map_err(|error| problem(error.to_string()))?;
    if decompressed.len() > limit {
        return Err(InferenceError::RequestTooLarge { limit });
    }
    Ok(decompressed.into())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    const LIMIT: usize = 10_000;

    fn read_with(
        headers: &[(&'static str, &str)],
        body: &[u8],
    ) -> Result<(InferRequest, ResponseForm), InferenceError> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, value.parse().unwrap());
        }
        let body = Bytes::copy_from_slice(body);
        super::read("m/f".parse().unwrap(), &map, body, LIMIT)
    }

    fn error(headers: &[(&'static str, &str)], body: &[u8]) -> String {
        let error = read_with(headers, body).expect_err(&String::from_utf8_lossy(body));
        error.to_string()
    }

    const BINARY: &str = r#"{"id":"7","inputs":[
        {"name":"a","shape":[2],"datatype":"INT16","parameters":{"binary_data_size":4}},
        {"name":"b","shape":[1],"datatype":"FP64","data":[2]},
        {"name":"c","shape":[1],"datatype":"UINT8","parameters":{"binary_data_size":1}}],
        "outputs":[{"name":"r","parameters":{"binary_data":true,"order":"F"}},{"name":"s"}],
        "parameters":{"timeout":5}}"#;

    fn with_binary(
        json: &str,
        header: usize,
        binary: &[u8],
    ) -> Result<(InferRequest, ResponseForm), InferenceError> {
        read_with(&[(JSON_LENGTH, &header.to_string())], &[json.as_bytes(), binary].concat())
    }

    #[test]
    fn binary_data_follow_the_json_in_the_order_of_the_inputs() {
        let (request, form) = with_binary(BINARY, BINARY.len(), &[1, 0, 2, 0, 9]).unwrap();
        let data: Vec<&[u8]> = request.inputs.iter().map(|input| &input.data[..]).collect();
        assert_eq!(data, [&[1, 0, 2, 0][..], &2_f64.to_le_bytes(), &[9]]);
        assert_eq!(request.timeout, Some(Duration::from_micros(5)));
        assert_eq!(request.outputs.unwrap()[0].order, ElementOrder::Column);
        assert_eq!(form.outputs, [("r".to_owned(), true), ("s".to_owned(), false)]);
        assert_eq!(form.id, "7");
    }

    #[test]
    fn wrong_lengths_of_binary_data_are_refused() {
        for binary in [&[0; 0][..], &[0; 4], &[0; 6], &[0; 100]] {
            let error = with_binary(BINARY, BINARY.len(), binary).unwrap_err();
            let is_it =
                matches!(error, InferenceError::Malformed(MalformedRequest::BinaryLength { .. }));
            assert!(is_it, "{error}");
        }
        for size in ["-1", "1.5", "\"4\"", "null"] {
            let json =
                BINARY.replace("\"binary_data_size\":4", &format!("\"binary_data_size\":{size}"));
            let error = with_binary(&json, json.len(), &[0; 5]).unwrap_err().to_string();
            assert!(error.contains("binary_data_size"), "{size}: {error}");
        }
        let json =
            BINARY.replace("\"binary_data_size\":4", "\"binary_data_size\":18446744073709551615");
        let error = with_binary(&json, json.len(), &[0; 5]).unwrap_err().to_string();
        assert!(error.contains("18446744073709551615"), "{error}");
    }

    #[test]
    fn the_json_header_ends_within_the_body() {
        for header in ["100000000000", "99999999999999999999999", "-1", "x", ""] {
            let message = error(&[(JSON_LENGTH, header)], b"{}");
            assert!(message.contains("Inference-Header-Content-Length"), "{message}");
        }
    }

    #[test]
    fn damaged_json_is_refused() {
        let json = r#"{"inputs":[{"name":"a","shape":[2],"datatype":"FP64","data":[1,2]}]}"#;
        assert!(read_with(&[], json.as_bytes()).is_ok());
        for len in 0..json.len() {
            assert!(read_with(&[], &json.as_bytes()[..len]).is_err(), "{len} bytes");
        }
        for (old, new) in [
            ("[2]", "[-2]"),
            ("[2]", "[2.5]"),
            ("[2]", "[3]"),
            ("[2]", "[18446744073709551615,3]"),
            ("[2]", "[4611686018427387904,4]"),
            ("[2]", "2"),
            ("FP64", "FP65"),
            ("FP64", "BOOL"),
            ("\"data\":[1,2]", "\"x\":0"),
            ("[1,2]", "[1,2,3]"),
            ("[1,2]", "null"),
            ("\"a\"", "5"),
            ("inputs", "input"),
        ] {
            let damaged = json.replacen(old, new, 1);
            assert!(read_with(&[], damaged.as_bytes()).is_err(), "{damaged}");
        }
    }

    #[test]
    fn keys_of_an_input_come_in_any_order() {
        for (datatype, data, expected) in [
            ("INT16", "[[1],[2]]", Ok([1, 0, 2, 0])),
            ("INT16", "[1,40000]", Err("input `a` has invalid data for INT16: 40000 does not fit")),
            (
                "INT16",
                "[1,2.5]",
                Err("input `a` has invalid data for INT16: there is the number 2.5"),
            ),
            ("INT16", "[\"1\",2]", Err("input `a` has invalid data for INT16: there is a string")),
            (
                "INT16",
                "[1,{\"b\":[2]}]",
                Err("input `a` has invalid data for INT16: there is an object"),
            ),
            ("INT16", "[1,null]", Err("input `a` has invalid data for INT16: there is null")),
            ("INT16", "[1]", Err("input `a` has 1 elements, but shape [2] needs 2")),
            ("BOOL", "[1,0]", Err("input `a` has invalid data for BOOL: there is a number")),
        ] {
            let shape = r#""shape":[2]"#;
            let (datatype, data) =
                (format!(r#""datatype":"{datatype}""#), format!(r#""data":{data}"#));
            for [first, second, third] in
                [[shape, &datatype, &data], [&datatype, &data, shape], [&data, shape, &datatype]]
            {
                let json =
                    format!(r#"{{"inputs":[{{{first},"name":"a","x":[1],{second},{third}}}]}}"#);
                let read = read_with(&[], json.as_bytes());
                let read = read.map(|(request, _)| request.inputs[0].data.to_vec());
                let read = read.map_err(|error| error.to_string());
                assert_eq!(read, expected.map(Vec::from).map_err(str::to_owned), "{json}");
            }
        }
        for json in [
            r#"{"inputs":[{"name":"a","shape":[1],"datatype":"INT8","data":null}]}"#,
            r#"{"inputs":[{"data":null,"name":"a","shape":[1],"datatype":"INT8"}]}"#,
        ] {
            assert_eq!(error(&[], json.as_bytes()), "input `a` has no data");
        }
        for key in ["name", "shape", "datatype", "data", "parameters"] {
            let json = r#"{"inputs":[{"name":"a","shape":[1],"datatype":"INT8","data":[1],"parameters":{}}]}"#;
            let value = json.split_once(&format!("\"{key}\":")).unwrap().1;
            let value = value.split_once([',', '}']).unwrap().0;
            let twice = json.replacen(r#"{"name""#, &format!("{{\"{key}\":{value},\"name\""), 1);
            let twice = twice.replace("{,", "{},");
            let message = error(&[], twice.as_bytes());
            assert!(message.contains("duplicate field"), "{twice}: {message}");
        }
    }

    #[test]
    fn messages_name_the_input() {
        let json = br#"{"inputs":[{"name":"a","shape":[3],"datatype":"FP64","data":[1,2]}]}"#;
        assert_eq!(error(&[], json), "input `a` has 2 elements, but shape [3] needs 3");
    }

    #[test]
    fn compressed_bodies_are_bounded() {
        let json = br#"{"inputs":[]}"#;
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(json).unwrap();
        let gzip = gzip.finish().unwrap();
        assert!(read_with(&[("content-encoding", "gzip")], &gzip).is_ok());
        let message = error(&[("content-encoding", "gzip")], &gzip[..gzip.len() - 3]);
        assert!(message.contains("gzip"), "{message}");
        assert!(error(&[("content-encoding", "br")], json).contains("br"));
        let mut bomb = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
        bomb.write_all(&vec![b' '; LIMIT + 1]).unwrap();
        let bomb = bomb.finish().unwrap();
        let error = read_with(&[("content-encoding", "deflate")], &bomb).unwrap_err();
        assert!(matches!(error, InferenceError::RequestTooLarge { .. }), "{error}");
    }

    #[test]
    fn the_first_accepted_encoding_is_taken() {
        for (accepted, wanted) in [
            ("br, deflate;q=0.5, gzip", Compression::Deflate),
            ("gzip;q=0, deflate", Compression::Deflate),
            ("identity", Compression::None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT_ENCODING, accepted.parse().unwrap());
            assert_eq!(Compression::accepted(&headers), wanted, "{accepted}");
        }
    }
}
