//! What all connections of a server share.

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
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::body::{Body, BoxError, TimedBody};
use crate::error::{Denied, InferenceError};
use crate::functions::{Caller, Credentials, Functions};
use crate::metadata::{ModelMetadata, VERSION};
use crate::name::FunctionName;
use crate::server::Options;
use crate::{grpc, rest};

/// What all connections of a server share.
pub(crate) struct Service {
    pub(crate) functions: Arc<dyn Functions>,
    pub(crate) options: Options,
    permits: Arc<Semaphore>,
}

/// The other end of a connection.
#[derive(Clone)]
pub(crate) struct Peer {
    pub(crate) certificates: Arc<[CertificateDer<'static>]>,
    pub(crate) address: SocketAddr,
}

impl Service {
    pub(crate) fn new(functions: Arc<dyn Functions>, options: Options) -> Service {
        let permits = Arc::new(Semaphore::new(options.max_running.min(Semaphore::MAX_PERMITS)));
        Service { functions, options, permits }
    }

    /// Answers a request of either protocol.
    pub(crate) async fn answer<B>(
        self: Arc<Self>,
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
            && !self.allows(origin)
        {
            let error = Denied::Forbidden("requests from other web pages are not allowed".into());
            return Ok(rest::error(&error.into()));
        }
        let mut response = if origin.is_some() && request.method() == Method::OPTIONS {
            preflight()
        } else {
            let credentials = credentials(peer, headers);
            let limit = self.options.request_timeout;
            let request = request.map(|body| TimedBody::new(body, limit));
            if is_grpc {
                grpc::handle(&self, credentials, request).await
            } else {
                rest::handle(&self, &credentials, request).await
            }
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

    fn allows(&self, origin: &HeaderValue) -> bool {
        let mut allowed = self.options.allowed_origins.iter();
        allowed.any(|allowed| allowed == "*" || allowed.as_bytes() == origin.as_bytes())
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.functions.is_ready()
    }

    /// State of all functions in the index of the repository.
    pub(crate) fn state(&self) -> &'static str {
        if self.is_ready() { "READY" } else { "UNAVAILABLE" }
    }

    pub(crate) fn extensions(&self) -> &'static [&'static str] {
        &["binary_tensor_data"]
    }

    /// Describes a function of the requested version.
    pub(crate) fn metadata(
        &self,
        caller: &Caller,
        name: &FunctionName,
        version: &str,
    ) -> Result<Arc<ModelMetadata>, InferenceError> {
        if !version.is_empty() && version != VERSION {
            return Err(InferenceError::NotFound {
                name: name.to_string(),
                version: version.chars().take(40).collect(),
            });
        }
        self.functions.metadata(caller, name)
    }

    /// The permit to run a call.
    pub(crate) fn permit(&self) -> Result<OwnedSemaphorePermit, InferenceError> {
        Arc::clone(&self.permits).try_acquire_owned().map_err(|_| InferenceError::Busy {
            reason: format!(
                "{} calls are running, the limit of this server",
                self.options.max_running
            ),
            retry_after: Some(self.options.retry_after),
        })
    }
}

/// What a web page of an allowed origin may send.
fn preflight() -> Response<Body> {
    let mut response = Response::new(Body::default());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, POST"));
    headers.insert(
        ACCESS_CONTROL_ALLOW_HEADERS,
        HeaderValue::from_static("authorization, content-type, inference-header-content-length"),
    );
    response
}

fn credentials(peer: Peer, headers: &HeaderMap) -> Credentials {
    let token = headers.get(AUTHORIZATION).and_then(|value| {
        let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| token.trim().to_owned())
    });
    Credentials { certificates: peer.certificates, token, peer: Some(peer.address) }
}
