//! Requests of a connection: admits them, and passes them to their protocol.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, AUTHORIZATION, CONTENT_TYPE, ORIGIN, VARY,
};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use rustls::pki_types::CertificateDer;
use tokio::sync::Notify;

use crate::body::{Body, BoxError, Sending, TimedBody};
use crate::error::AuthError;
use crate::functions::RequestCredentials;
use crate::service::{RequestPermit, Service};
use crate::{grpc, rest};

/// The other end of a connection.
#[derive(Clone)]
pub(crate) struct Peer {
    pub(crate) certificates: Arc<[CertificateDer<'static>]>,
    pub(crate) address: SocketAddr,
    /// Closes the connection.
    pub(crate) stalled: Arc<Notify>,
}

/// Answers a request of either protocol.
pub(crate) async fn answer<B>(
    service: Arc<Service>,
    peer: Peer,
    request: Request<B>,
) -> Result<Response<Body>, Infallible>
where
    B: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<BoxError>,
{
    let headers = request.headers();
    let is_grpc = headers
        .get(CONTENT_TYPE)
        .is_some_and(|value| value.as_bytes().starts_with(b"application/grpc"));
    let origin = headers.get(ORIGIN).cloned();
    if let Some(origin) = &origin
        && !allows(&service, origin)
    {
        let error = AuthError::Forbidden("requests from other web pages are not allowed".into());
        return Ok(rest::error(&error.into()));
    }
    let mut response = if origin.is_some() && request.method() == Method::OPTIONS {
        preflight()
    } else {
        let limit = service.options.request_timeout;
        let stalled = Arc::clone(&peer.stalled);
        let credentials = credentials(peer, headers);
        let request = request.map(|body| TimedBody::new(body, limit));
        let mut response = if is_grpc {
            grpc::handle(&service, credentials, request).await
        } else {
            rest::handle(&service, &credentials, request).await
        };
        let permit = response.extensions_mut().remove::<RequestPermit>();
        if let Some(permit) = permit.and_then(|permit| permit.take()) {
            response.body_mut().hold(Sending::new(permit, limit, stalled));
        }
        response
    };
    if let Some(origin) = origin {
        let headers = response.headers_mut();
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(
            ACCESS_CONTROL_EXPOSE_HEADERS,
            HeaderValue::from_static("inference-header-content-length, retry-after"),
        );
        headers.insert(VARY, HeaderValue::from_static("origin"));
    }
    Ok(response)
}

fn allows(service: &Service, origin: &HeaderValue) -> bool {
    let mut allowed = service.options.allowed_origins.iter();
    allowed.any(|allowed| allowed == "*" || allowed.as_bytes() == origin.as_bytes())
}

/// What a web page of an allowed origin may send.
fn preflight() -> Response<Body> {
    let mut response = Response::new(Body::default());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, POST"));
    headers.insert(
        ACCESS_CONTROL_ALLOW_HEADERS,
        HeaderValue::from_static(
            "authorization, content-type, inference-header-content-length, traceparent",
        ),
    );
    response
}

fn credentials(peer: Peer, headers: &HeaderMap) -> RequestCredentials {
    let token = headers.get(AUTHORIZATION).and_then(|value| {
        let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| token.trim().to_owned())
    });
    RequestCredentials { certificates: peer.certificates, token, peer: Some(peer.address) }
}
