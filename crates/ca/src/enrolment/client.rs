//! The user's machine: makes the key, and gets the certificate for a token.

use std::io::{self, Read as _, Write as _};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use gridrpc_transport::certificates::{CredentialFiles, Utc};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::version::TLS13;
use rustls::{
    CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, RootCertStore,
    SignatureScheme, StreamOwned,
};

use super::message::{EnrolmentRequest, EnrolmentResponse, LIMIT, PATH};
use super::token::Fingerprint;
use super::{EnrolmentError, EnrolmentToken, fingerprint};
use crate::authority::SERVICE_NAME;
use crate::user::{NewKey, install_text};

/// How long the client waits for a connection, and for each answer.
const WAIT: Duration = Duration::from_secs(20);

/// The credentials of a user who has enrolled.
#[derive(Clone, Debug)]
pub struct Enrolled {
    /// The installed files.
    pub files: CredentialFiles,
    /// Name of the user, as the authority knows it.
    pub user: String,
    /// Groups of the user.
    pub groups: Vec<String>,
    /// End of the certificate's validity.
    pub until: SystemTime,
}

/// Makes a private key in a folder, and gets and installs a certificate for it. `user`: the expected name.
///
/// Nothing of the key is sent. Without success, the folder is left as it was.
///
/// # Errors
/// When the folder contains a key, the authority cannot be reached or is not the one of the token, or it refuses the
/// token.
pub fn enrol(
    token: &EnrolmentToken,
    user: Option<&str>,
    folder: &Path,
) -> Result<Enrolled, EnrolmentError> {
    let (key, request) = NewKey::create(user, folder)?;
    let pem = exchange(token, request)?;
    let (files, identity) = install_text(&pem, folder)?;
    key.keep();
    Ok(Enrolled { files, user: identity.user, groups: identity.groups, until: identity.until })
}

/// Sends a request. Returns the certificates.
fn exchange(token: &EnrolmentToken, request: String) -> Result<String, EnrolmentError> {
    let address = token.address();
    let stream = connect(address)
        .map_err(|error| EnrolmentError::Unreachable { address: address.to_owned(), error })?;
    let body = EnrolmentRequest { token: token.as_str().to_owned(), request };
    let failed = |error: io::Error| failure(address, &error);
    let body = serde_json::to_vec(&body).map_err(|error| failed(error.into()))?;
    let name =
        ServerName::try_from(SERVICE_NAME).map_err(|error| failed(io::Error::other(error)))?;
    let connection = ClientConnection::new(Arc::new(config(*token.authority())?), name)?;
    let mut stream = StreamOwned::new(connection, stream);
    let response = talk(&mut stream, &body).map_err(failed)?;
    match response {
        EnrolmentResponse::Certificate(pem) => Ok(pem),
        EnrolmentResponse::Refused(refusal) => {
            Err(EnrolmentError::Refused { address: address.to_owned(), refusal })
        }
    }
}

fn connect(address: &str) -> io::Result<TcpStream> {
    let mut result = Err(io::Error::other("the name has no address"));
    for socket in address.to_socket_addrs()? {
        result = TcpStream::connect_timeout(&socket, WAIT);
        if result.is_ok() {
            break;
        }
    }
    let stream = result?;
    stream.set_read_timeout(Some(WAIT))?;
    stream.set_write_timeout(Some(WAIT))?;
    Ok(stream)
}

/// Sends a request over HTTP, and reads the response up to the end of the connection.
fn talk(
    stream: &mut StreamOwned<ClientConnection, TcpStream>,
    body: &[u8],
) -> io::Result<EnrolmentResponse> {
    let head = format!(
        "POST {PATH} HTTP/1.1\r\nHost: {SERVICE_NAME}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body)?;
    stream.flush()?;
    let mut response = Vec::new();
    stream.take(LIMIT as u64).read_to_end(&mut response)?;
    let end = response.windows(4).position(|part| part == b"\r\n\r\n");
    let body = end.and_then(|end| response.get(end + 4..));
    let body = body.ok_or_else(|| io::Error::other("the answer is not HTTP"))?;
    Ok(serde_json::from_slice(body)?)
}

fn failure(address: &str, error: &io::Error) -> EnrolmentError {
    let address = address.to_owned();
    let tls = error.get_ref().and_then(|source| source.downcast_ref::<rustls::Error>());
    let at = |time: UnixTime| Utc(SystemTime::UNIX_EPOCH + Duration::from_secs(time.as_secs()));
    match tls {
        Some(rustls::Error::InvalidCertificate(CertificateError::NotValidYetContext {
            time,
            not_before,
        })) => EnrolmentError::Clock {
            address,
            problem: format!(
                "is valid from {}, and the clock of this machine says {}",
                at(*not_before),
                at(*time)
            ),
        },
        Some(rustls::Error::InvalidCertificate(CertificateError::ExpiredContext {
            time,
            not_after,
        })) => EnrolmentError::Clock {
            address,
            problem: format!(
                "expired on {}, and the clock of this machine says {}",
                at(*not_after),
                at(*time)
            ),
        },
        Some(rustls::Error::InvalidCertificate(_) | rustls::Error::InvalidMessage(_)) => {
            EnrolmentError::OtherAuthority { address }
        }
        _ => EnrolmentError::Connection { address, reason: error.to_string() },
    }
}

fn config(authority: Fingerprint) -> Result<ClientConfig, rustls::Error> {
    let provider = Arc::new(ring::default_provider());
    let verifier = PinnedAuthority { authority, provider: Arc::clone(&provider) };
    let config = ClientConfig::builder_with_provider(provider).with_protocol_versions(&[&TLS13])?;
    let config = config.dangerous().with_custom_certificate_verifier(Arc::new(verifier));
    Ok(config.with_no_client_auth())
}

/// Trusts the authority with one fingerprint, which the other side presents after its own certificate.
#[derive(Debug)]
struct PinnedAuthority {
    authority: Fingerprint,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for PinnedAuthority {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let authority = intermediates.iter().find(|one| fingerprint(one) == self.authority);
        let authority = authority.ok_or(CertificateError::UnknownIssuer)?;
        let mut roots = RootCertStore::empty();
        roots.add(authority.clone().into_owned())?;
        let provider = Arc::clone(&self.provider);
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider);
        let verifier =
            verifier.build().map_err(|error| rustls::Error::General(error.to_string()))?;
        verifier.verify_server_cert(end_entity, &[], server_name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(rustls::Error::General("TLS 1.2 is not offered".to_owned()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
