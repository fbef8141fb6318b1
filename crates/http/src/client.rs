//! Requests to one URL, over TCP or TLS.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use gridrpc_transport::certificates::{CredentialFiles, Credentials, UserKeys};
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HOST};
use hyper::rt::{Read, Write};
use hyper::{Method, Request, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, InvalidDnsNameError, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// Longest response, bytes.
const LONGEST: usize = 64 << 20;

/// How a service with an `https` URL and its client prove who they are.
#[derive(Clone, Copy, Debug)]
pub enum Trust<'p> {
    /// The service by a certificate that the system trusts.
    System,
    /// The service by a certificate of the authorities in this file.
    Authority(&'p Path),
    /// Both by certificates: the credentials of a user in this folder.
    Credentials(&'p Path),
    /// Both by the certificates in these files.
    Files(&'p CredentialFiles),
}

/// A service, and how to reach it.
pub struct HttpClient {
    url: Uri,
    /// For `https` URLs.
    tls: Option<TlsConnector>,
}

impl fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpClient").field("url", &self.url).finish_non_exhaustive()
    }
}

/// Why a request has no response.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// No connection.
    #[error("cannot connect: {0}")]
    Connect(io::Error),
    /// The certificates do not fit, or the other end speaks no TLS.
    #[error("no TLS connection: {0}")]
    Tls(io::Error),
    /// The host is no name that a certificate can have.
    #[error("the name of the host is invalid: {0}")]
    Name(#[from] InvalidDnsNameError),
    /// The connection has ended, or the other end speaks no HTTP.
    #[error(transparent)]
    Http(#[from] hyper::Error),
    /// The path or the type of the content is invalid.
    #[error("the request is invalid: {0}")]
    Request(#[from] hyper::http::Error),
    /// The response is longer than this client accepts.
    #[error("the response is longer than {LONGEST} bytes")]
    TooLong,
}

impl HttpClient {
    /// A client for the service at `url`. Reads the certificates if that is an `https` URL.
    ///
    /// # Errors
    /// When there are none.
    pub fn new(url: &Uri, trust: Trust<'_>) -> io::Result<HttpClient> {
        let is_tls = url.scheme_str() == Some("https");
        let tls = is_tls.then(|| connector(trust)).transpose()?;
        Ok(HttpClient { url: url.clone(), tls })
    }

    /// The URL of the service.
    #[must_use]
    pub fn url(&self) -> &Uri {
        &self.url
    }

    /// Posts content of this type to the URL of the service. Returns the status and the body of the response.
    ///
    /// # Errors
    /// When there is no response.
    pub async fn post(
        &self,
        content_type: &str,
        body: Bytes,
    ) -> Result<(StatusCode, Bytes), HttpError> {
        let path = self.url.path_and_query().map_or("/", |path| path.as_str());
        self.request(Method::POST, path, content_type, body).await
    }

    /// Makes a request on a connection of its own: there is at most one per second.
    ///
    /// # Errors
    /// When there is no response.
    pub async fn request(
        &self,
        method: Method,
        path: &str,
        content_type: &str,
        body: Bytes,
    ) -> Result<(StatusCode, Bytes), HttpError> {
        let (status, body) = self.stream(method, path, content_type, body).await?;
        let body = Limited::new(body, LONGEST).collect().await.map_err(|error| match error
            .downcast::<hyper::Error>(
        ) {
            Ok(error) => HttpError::Http(*error),
            Err(error) => {
                debug_assert!(error.is::<LengthLimitError>());
                HttpError::TooLong
            }
        })?;
        Ok((status, body.to_bytes()))
    }

    /// As `request`, with a response that is read piece by piece.
    ///
    /// # Errors
    /// When there is no response.
    pub async fn stream(
        &self,
        method: Method,
        path: &str,
        content_type: &str,
        body: Bytes,
    ) -> Result<(StatusCode, Incoming), HttpError> {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, self.url.authority().map_or("", |authority| authority.as_str()))
            .header(CONTENT_TYPE, content_type)
            .body(Full::new(body))?;
        let host = self.url.host().unwrap_or_default();
        // A literal address of IPv6 has brackets in a URL only.
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let default = if self.tls.is_some() { 443 } else { 80 };
        let stream = TcpStream::connect((bare, self.url.port_u16().unwrap_or(default)));
        let stream = stream.await.map_err(HttpError::Connect)?;
        match &self.tls {
            None => send(TokioIo::new(stream), request).await,
            Some(tls) => {
                let name = ServerName::try_from(bare.to_owned())?;
                let stream = tls.connect(name, stream).await.map_err(HttpError::Tls)?;
                send(TokioIo::new(stream), request).await
            }
        }
    }
}

async fn send(
    stream: impl Read + Write + Unpin + Send + 'static,
    request: Request<Full<Bytes>>,
) -> Result<(StatusCode, Incoming), HttpError> {
    let (mut sender, connection) = hyper::client::conn::http1::handshake(stream).await?;
    // It ends with the response; its error is that of the request.
    tokio::spawn(async { drop(connection.await) });
    let (head, body) = sender.send_request(request).await?.into_parts();
    Ok((head.status, body))
}

fn connector(trust: Trust<'_>) -> io::Result<TlsConnector> {
    let certificates: Vec<CertificateDer<'_>> = match trust {
        Trust::Credentials(folder) => return with_keys(&CredentialFiles::in_folder(folder)),
        Trust::Files(files) => return with_keys(files),
        Trust::Authority(file) => CertificateDer::pem_file_iter(file)
            .and_then(Iterator::collect)
            .map_err(|error| unreadable(file, &error.to_string()))?,
        Trust::System => rustls_native_certs::load_native_certs().certs,
    };
    let mut roots = RootCertStore::empty();
    let (added, _) = roots.add_parsable_certificates(certificates);
    if added == 0 {
        return Err(match trust {
            Trust::Authority(file) => unreadable(file, "it has no valid certificate"),
            Trust::System | Trust::Credentials(_) | Trust::Files(_) => io::Error::other(
                "the system has no certificates of authorities: install `ca-certificates`, or set `authority`",
            ),
        });
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}

fn with_keys(files: &CredentialFiles) -> io::Result<TlsConnector> {
    let credentials = Credentials::read(files).map_err(io::Error::other)?;
    let keys = UserKeys::new(&credentials).map_err(io::Error::other)?;
    Ok(TlsConnector::from(keys.config()))
}

fn unreadable(file: &Path, why: &str) -> io::Error {
    io::Error::other(format!("cannot read certificates from `{}`: {why}", file.display()))
}
