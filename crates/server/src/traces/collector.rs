//! Connections to the collector that receives traces.

use std::io;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::Full;
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

use crate::config::TracesConfig;

/// A collector, and how to reach it.
pub(crate) struct Collector {
    url: Uri,
    /// For `https` addresses.
    tls: Option<TlsConnector>,
}

/// Why spans were not exported.
#[derive(Debug, thiserror::Error)]
pub(super) enum ExportError {
    #[error("cannot connect: {0}")]
    Connect(io::Error),
    #[error("no TLS connection: {0}")]
    Tls(io::Error),
    #[error("the name of the collector is invalid: {0}")]
    Name(#[from] InvalidDnsNameError),
    #[error(transparent)]
    Http(#[from] hyper::Error),
    #[error("the collector answered {0}")]
    Status(StatusCode),
    #[error("the request is invalid: {0}")]
    Request(#[from] hyper::http::Error),
}

impl Collector {
    /// Reads the certificates that the collector is checked with, if its address is an `https` URL.
    ///
    /// # Errors
    /// When there are none.
    pub(crate) fn new(config: &TracesConfig) -> io::Result<Collector> {
        let is_tls = config.url.scheme_str() == Some("https");
        let tls = is_tls.then(|| connector(config.authority.as_deref())).transpose()?;
        Ok(Collector { url: config.url.clone(), tls })
    }

    pub(super) fn url(&self) -> &Uri {
        &self.url
    }

    /// Posts a request on a connection of its own: there is at most one per second.
    pub(super) async fn post(&self, body: Bytes) -> Result<(), ExportError> {
        let host = self.url.host().unwrap_or_default();
        // A literal address of IPv6 has brackets in a URL only.
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let default = if self.tls.is_some() { 443 } else { 80 };
        let stream = TcpStream::connect((bare, self.url.port_u16().unwrap_or(default)));
        let stream = stream.await.map_err(ExportError::Connect)?;
        match &self.tls {
            None => self.post_on(TokioIo::new(stream), body).await,
            Some(tls) => {
                let name = ServerName::try_from(bare.to_owned())?;
                let stream = tls.connect(name, stream).await.map_err(ExportError::Tls)?;
                self.post_on(TokioIo::new(stream), body).await
            }
        }
    }

    async fn post_on(
        &self,
        stream: impl Read + Write + Unpin + Send + 'static,
        body: Bytes,
    ) -> Result<(), ExportError> {
        let (mut sender, connection) = hyper::client::conn::http1::handshake(stream).await?;
        let request = Request::builder()
            .method(Method::POST)
            .uri(self.url.path_and_query().map_or("/", |path| path.as_str()))
            .header(HOST, self.url.authority().map_or("", |authority| authority.as_str()))
            .header(CONTENT_TYPE, "application/x-protobuf")
            .body(Full::new(body))?;
        // It ends with the sender; its error is that of the request.
        tokio::spawn(async { drop(connection.await) });
        let status = sender.send_request(request).await?.status();
        if status.is_success() { Ok(()) } else { Err(ExportError::Status(status)) }
    }
}

/// A connector that trusts the certificates in `authority`; without it, those that the system trusts.
fn connector(authority: Option<&Path>) -> io::Result<TlsConnector> {
    let certificates: Vec<CertificateDer<'_>> = match authority {
        Some(file) => CertificateDer::pem_file_iter(file)
            .and_then(Iterator::collect)
            .map_err(|error| unreadable(file, &error.to_string()))?,
        None => rustls_native_certs::load_native_certs().certs,
    };
    let mut roots = RootCertStore::empty();
    let (added, _) = roots.add_parsable_certificates(certificates);
    if added == 0 {
        return Err(match authority {
            Some(file) => unreadable(file, "it has no valid certificate"),
            None => io::Error::other(
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

fn unreadable(file: &Path, why: &str) -> io::Error {
    io::Error::other(format!("cannot read certificates from `{}`: {why}", file.display()))
}
