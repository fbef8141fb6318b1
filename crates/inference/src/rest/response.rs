//! Responses in REST.

use std::collections::VecDeque;
use std::io::Write;

use bytes::Bytes;
use http::header::{
    CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY,
    RETRY_AFTER, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderName, HeaderValue, Response, StatusCode};
use serde::Serialize;

use crate::body::{Body, Chunks};
use crate::error::InferenceError;
use crate::functions::Page;
use crate::metadata::VERSION;
use crate::name::FunctionName;
use crate::rest::json;
use crate::rest::request::{Compression, JSON_LENGTH, ResponseForm};
use crate::tensor::InferResponse;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const BINARY: HeaderValue = HeaderValue::from_static("application/octet-stream");

#[derive(Serialize)]
struct JsonResponse<'a> {
    model_name: String,
    model_version: &'static str,
    #[serde(skip_serializing_if = "str::is_empty")]
    id: &'a str,
}

#[derive(Serialize)]
struct JsonOutput<'a> {
    name: &'a str,
    datatype: &'static str,
    shape: &'a [u64],
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters: Option<BinarySize>,
}

#[derive(Serialize)]
struct BinarySize {
    binary_data_size: usize,
}

/// An answer without a body.
pub(super) fn empty(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::default());
    *response.status_mut() = status;
    response
}

/// An answer in JSON.
pub(super) fn json(status: StatusCode, value: &impl Serialize) -> Response<Body> {
    let Ok(text) = serde_json::to_vec(value) else {
        return empty(StatusCode::INTERNAL_SERVER_ERROR);
    };
    let mut response = Response::new(Body::chunks(Chunks::from(Bytes::from(text))));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, JSON);
    response
}

/// A page. Browsers load only what comes from here, and keep nothing.
pub(super) fn page(page: Page) -> Response<Body> {
    const HEADERS: [(HeaderName, &str); 4] = [
        (CACHE_CONTROL, "no-store"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (
            CONTENT_SECURITY_POLICY,
            "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
             img-src data:; frame-ancestors 'none'",
        ),
    ];
    let mut response = Response::new(Body::chunks(Chunks::from(page.content)));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(page.content_type));
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

/// The answer for an error.
pub(crate) fn error(error: &InferenceError) -> Response<Body> {
    let mut response = json(error.status(), &serde_json::json!({ "error": error.to_string() }));
    let headers = response.headers_mut();
    if let Some(time) = error.retry_after() {
        let seconds = time.as_millis().div_ceil(1000);
        if let Ok(value) = HeaderValue::from_str(&seconds.to_string()) {
            headers.insert(RETRY_AFTER, value);
        }
    }
    if error.status() == StatusCode::UNAUTHORIZED {
        headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}

/// The answer with the results of a call.
pub(super) fn results(
    function: &FunctionName,
    form: &ResponseForm,
    response: InferResponse,
) -> Result<Response<Body>, InferenceError> {
    let answer =
        JsonResponse { model_name: function.to_string(), model_version: VERSION, id: &form.id };
    let mut head = Vec::new();
    open_object(&mut head, &answer)?;
    head.extend_from_slice(b",\"outputs\":[");
    let mut binary = VecDeque::new();
    for (index, output) in response.outputs.iter().enumerate() {
        let listed = form.outputs.iter().find(|(name, _)| *name == output.name);
        let is_binary = listed.map_or(form.binary, |(_, binary)| *binary);
        let size = is_binary.then_some(BinarySize { binary_data_size: output.data.len() });
        if index > 0 {
            head.push(b',');
        }
        let described = JsonOutput {
            name: &output.name,
            datatype: output.datatype.name(),
            shape: &output.shape,
            parameters: size,
        };
        open_object(&mut head, &described)?;
        if is_binary {
            binary.push_back(output.data.clone());
        } else {
            // Straight into the answer: the elements are most of it.
            head.extend_from_slice(b",\"data\":");
            let name = &output.name;
            json::encode(output.datatype, &output.data, &mut head)
                .map_err(|problem| InferenceError::System(format!("output `{name}` {problem}")))?;
        }
        head.push(b'}');
    }
    head.extend_from_slice(b"]}");
    let json_length = head.len();
    let is_binary = !binary.is_empty();
    binary.push_front(head.into());
    let (chunks, encoding) = compress(form.compression, binary)?;
    let mut answer = Response::new(Body::chunks(Chunks::new(chunks)));
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, if is_binary { BINARY } else { JSON });
    if is_binary {
        headers.insert(JSON_LENGTH, HeaderValue::from(json_length));
    }
    if let Some(encoding) = encoding {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static(encoding));
    }
    Ok(answer)
}

/// Appends an object, without its end: more fields follow.
fn open_object(json: &mut Vec<u8>, value: &impl Serialize) -> Result<(), InferenceError> {
    serde_json::to_writer(&mut *json, value)
        .map_err(|error| InferenceError::System(format!("the response has no JSON: {error}")))?;
    json.pop();
    Ok(())
}

type Encoded = (VecDeque<Bytes>, Option<&'static str>);

fn compress(compression: Compression, chunks: VecDeque<Bytes>) -> Result<Encoded, InferenceError> {
    let failed = |error| InferenceError::System(format!("the response is not compressed: {error}"));
    let level = flate2::Compression::fast();
    let (compressed, name) = match compression {
        Compression::None => return Ok((chunks, None)),
        Compression::Gzip => {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), level);
            chunks.iter().try_for_each(|chunk| encoder.write_all(chunk)).map_err(failed)?;
            (encoder.finish().map_err(failed)?, "gzip")
        }
        Compression::Deflate => {
            let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), level);
            chunks.iter().try_for_each(|chunk| encoder.write_all(chunk)).map_err(failed)?;
            (encoder.finish().map_err(failed)?, "deflate")
        }
    };
    Ok((VecDeque::from([compressed.into()]), Some(name)))
}
