//! TLS of a server, from files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{VerifierBuilderError, WebPkiClientVerifier};
use rustls::version::TLS13;
use rustls::{RootCertStore, ServerConfig};
use thiserror::Error;

/// Files of a server's TLS, in PEM.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    /// The server's certificate, and those between it and its authority.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// The authorities of clients' certificates; `None`: clients present none.
    pub client_authorities: Option<PathBuf>,
    /// Whether every client has to present a certificate. Otherwise, those without one need a token.
    pub require_certificate: bool,
}

/// Reason why there is no TLS.
#[derive(Debug, Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("could not read `{}`: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The reason.
        error: pem::Error,
    },
    /// A file has no certificate.
    #[error("`{}` contains no certificate", path.display())]
    NoCertificate {
        /// The file.
        path: PathBuf,
    },
    /// The certificates of the clients' authorities are not usable.
    #[error("the clients' authorities are not usable: {0}")]
    Authorities(#[from] VerifierBuilderError),
    /// The certificate and the key are not usable.
    #[error("the certificate is not usable: {0}")]
    Certificate(#[from] rustls::Error),
}

/// TLS 1.3 with these files.
///
/// # Errors
/// When a file cannot be read or is not usable.
pub fn server_config(files: &TlsFiles) -> Result<ServerConfig, TlsError> {
    let provider = Arc::new(ring::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&TLS13])?;
    let builder = match &files.client_authorities {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let mut roots = RootCertStore::empty();
            for certificate in certificates(path)? {
                roots.add(certificate)?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider);
            let verifier =
                if files.require_certificate { verifier } else { verifier.allow_unauthenticated() };
            builder.with_client_cert_verifier(verifier.build()?)
        }
    };
    let key = PrivateKeyDer::from_pem_file(&files.key).map_err(failed(&files.key))?;
    Ok(builder.with_single_cert(certificates(&files.certificate)?, key)?)
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let list = CertificateDer::pem_file_iter(path).map_err(failed(path))?;
    let list = list.collect::<Result<Vec<_>, _>>().map_err(failed(path))?;
    if list.is_empty() {
        return Err(TlsError::NoCertificate { path: path.to_owned() });
    }
    Ok(list)
}

fn failed(path: &Path) -> impl Fn(pem::Error) -> TlsError {
    move |error| TlsError::File { path: path.to_owned(), error }
}
