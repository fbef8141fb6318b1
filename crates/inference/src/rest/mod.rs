//! The protocol over REST.

mod json;
mod path;
mod request;
mod response;

use bytes::{Bytes, BytesMut};
use http::header::CONTENT_LENGTH;
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use serde_json::json;

use crate::blocking;
use crate::body::{Body, BoxError, SlowBody};
use crate::error::{InferenceError, MalformedRequest};
use crate::functions::{Principal, RequestCredentials};
use crate::rest::path::{Endpoint, Model, endpoint};
use crate::service::Service;

pub(crate) use response::error;

/// Answers a request.
pub(crate) async fn handle<B>(
    service: &Service,
    credentials: &RequestCredentials,
    request: Request<B>,
) -> Response<Body>
where
    B: http_body::Body<Data = Bytes> + Send + Unpin,
    B::Error: Into<BoxError>,
{
    let (head, body) = request.into_parts();
    let endpoint = match endpoint(head.uri.path()) {
        Ok(endpoint) => endpoint,
        Err(error) if head.method == Method::GET => {
            return page(service, credentials, &head.uri, error);
        }
        Err(error) => return response::error(&error),
    };
    let answer = match endpoint {
        Endpoint::Infer(model) if head.method == Method::POST => {
            infer(service, credentials, &head.headers, model, body).await
        }
        Endpoint::Infer(_) => Err(InferenceError::Method { allowed: "POST" }),
        Endpoint::Index if matches!(head.method, Method::GET | Method::POST) => {
            index(service, credentials)
        }
        _ if head.method == Method::GET => get(service, credentials, &endpoint),
        _ => Err(InferenceError::Method { allowed: "GET" }),
    };
    answer.unwrap_or_else(|error| response::error(&error))
}

/// A page of the server's owner, or the error of the protocol.
fn page(
    service: &Service,
    credentials: &RequestCredentials,
    uri: &Uri,
    error: InferenceError,
) -> Response<Body> {
    match service.functions.page(uri.path(), uri.query(), credentials) {
        Ok(None) => response::error(&error),
        Ok(Some(page)) => response::page(page),
        Err(denied) => response::error(&denied.into()),
    }
}

fn get(
    service: &Service,
    credentials: &RequestCredentials,
    endpoint: &Endpoint,
) -> Result<Response<Body>, InferenceError> {
    let health = |healthy: bool| {
        let status = if healthy { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
        response::empty(status)
    };
    Ok(match endpoint {
        Endpoint::Live => health(true),
        Endpoint::Ready => health(service.is_ready()),
        Endpoint::Server => response::json(
            StatusCode::OK,
            &json!({
                "name": service.options.name,
                "version": service.options.version,
                "extensions": service.extensions(),
            }),
        ),
        Endpoint::ModelReady(Model { name, version }) => {
            let caller = service.functions.authenticate(credentials)?;
            service.metadata(&caller, name, version)?;
            health(service.is_ready())
        }
        Endpoint::Model(Model { name, version }) => {
            let caller = service.functions.authenticate(credentials)?;
            let metadata = service.metadata(&caller, name, version)?;
            response::json(StatusCode::OK, &*metadata)
        }
        Endpoint::Index | Endpoint::Infer(_) => {
            return Err(InferenceError::Method { allowed: "POST" });
        }
    })
}

fn index(
    service: &Service,
    credentials: &RequestCredentials,
) -> Result<Response<Body>, InferenceError> {
    let caller = service.functions.authenticate(credentials)?;
    let state = service.state();
    let models: Vec<_> = service
        .functions
        .list(&caller)
        .iter()
        .map(|name| json!({ "name": name.to_string(), "version": crate::VERSION, "state": state }))
        .collect();
    Ok(response::json(StatusCode::OK, &models))
}

async fn infer<B>(
    service: &Service,
    credentials: &RequestCredentials,
    headers: &HeaderMap,
    model: Model,
    body: B,
) -> Result<Response<Body>, InferenceError>
where
    B: http_body::Body<Data = Bytes> + Send + Unpin,
    B::Error: Into<BoxError>,
{
    let caller: Principal = service.functions.authenticate(credentials)?;
    service.metadata(&caller, &model.name, &model.version)?;
    let permit = service.permit()?;
    let limit = service.options.max_request_bytes;
    let body = receive(headers, body, limit).await?;
    let bytes = body.len();
    let (name, headers) = (model.name, headers.clone());
    let read = {
        let name = name.clone();
        move || request::read(name, &headers, body, limit)
    };
    let (request, form) = blocking::run(bytes, read).await??;
    let response = service.functions.infer(&caller, request).await?;
    let bytes = response.outputs.iter().map(|output| output.data.len()).sum();
    let mut response =
        blocking::run(bytes, move || response::results(&name, &form, response)).await??;
    response.extensions_mut().insert(permit);
    Ok(response)
}

async fn receive<B>(headers: &HeaderMap, body: B, limit: usize) -> Result<Bytes, InferenceError>
where
    B: http_body::Body<Data = Bytes> + Send + Unpin,
    B::Error: Into<BoxError>,
{
    let declared = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
    let is_too_large = declared.is_some_and(|declared: u64| declared > limit as u64);
    if is_too_large {
        // Many clients read no answer before they have sent their request.
        let mut rest = Limited::new(body, limit.saturating_mul(2));
        if declared.is_some_and(|declared| declared / 2 <= limit as u64) {
            while rest.frame().await.is_some_and(|frame| frame.is_ok()) {}
        }
        return Err(InferenceError::RequestTooLarge { limit });
    }
    let mut body = Limited::new(body, limit);
    // One piece of memory, which grows as data arrive: their declared length is only a claim.
    let mut received = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| {
            if error.is::<LengthLimitError>() {
                return InferenceError::RequestTooLarge { limit };
            }
            match error.downcast::<SlowBody>() {
                Ok(slow) => InferenceError::Slow { limit: slow.limit },
                Err(error) => MalformedRequest::Body(error.to_string()).into(),
            }
        })?;
        if let Ok(data) = frame.into_data() {
            received.extend_from_slice(&data);
        }
    }
    Ok(received.freeze())
}
