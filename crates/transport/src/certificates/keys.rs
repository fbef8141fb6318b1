//! TLS configurations of both sides, from their credentials.

use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{NoServerSessionStorage, VerifierBuilderError, WebPkiClientVerifier};
use rustls::version::TLS13;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, DistinguishedName, ServerConfig,
    SignatureScheme,
};
use thiserror::Error;

use super::{Credentials, Revocations};
use crate::keys::provider;

/// The keys of a user, to connect to servers.
#[derive(Clone)]
pub struct UserKeys {
    config: Arc<ClientConfig>,
    /// Start and end of the validity of the user's certificate.
    validity: (SystemTime, SystemTime),
}

/// The keys of a server. It admits users with a certificate of a trusted authority.
#[derive(Clone)]
pub struct ServerKeys {
    config: Arc<ServerConfig>,
    revocations: Revocations,
}

/// Reason why TLS cannot be set up with credentials.
#[derive(Debug, Error)]
pub enum CredentialKeysError {
    /// No certificate can be verified with the authorities.
    #[error("the authorities cannot be used: {0}")]
    Authorities(#[from] VerifierBuilderError),
    /// The certificate or the key cannot be used.
    #[error("the certificate cannot be used: {0}")]
    Certificate(#[from] rustls::Error),
}

impl UserKeys {
    /// The keys in a user's credentials.
    ///
    /// # Errors
    /// When TLS cannot be set up with them.
    pub fn new(credentials: &Credentials) -> Result<UserKeys, CredentialKeysError> {
        let provider = provider();
        let roots = Arc::clone(&credentials.roots);
        let verifier =
            WebPkiServerVerifier::builder_with_provider(roots, Arc::clone(&provider)).build()?;
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&TLS13])?
            .with_webpki_verifier(verifier)
            .with_client_auth_cert(credentials.chain.clone(), credentials.key.clone_key())?;
        config.resumption = Resumption::disabled();
        Ok(UserKeys { config: Arc::new(config), validity: credentials.validity })
    }

    /// TLS 1.3 with the user's certificate, which verifies the server's.
    #[must_use]
    pub fn config(&self) -> Arc<ClientConfig> {
        Arc::clone(&self.config)
    }

    pub(crate) fn validity(&self) -> (SystemTime, SystemTime) {
        self.validity
    }
}

impl ServerKeys {
    /// The keys in a server's credentials. Users whose certificates are `revoked` are refused.
    ///
    /// # Errors
    /// When TLS cannot be set up with them.
    pub fn new(
        credentials: &Credentials,
        revoked: Revocations,
    ) -> Result<ServerKeys, CredentialKeysError> {
        let config = Arc::new(server_config(credentials, &revoked, ClientCertificates::Required)?);
        Ok(ServerKeys { config, revocations: revoked })
    }

    /// The certificates that are refused.
    #[must_use]
    pub fn revocations(&self) -> &Revocations {
        &self.revocations
    }

    pub(crate) fn config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.config)
    }
}

/// Whether clients have to present a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientCertificates {
    /// Each does.
    Required,
    /// Those without one have other credentials.
    Optional,
}

/// TLS 1.3 for a server, which verifies the certificates that clients present and refuses the `revoked` ones.
///
/// # Errors
/// When TLS cannot be set up with the credentials.
pub fn server_config(
    credentials: &Credentials,
    revoked: &Revocations,
    client_certificates: ClientCertificates,
) -> Result<ServerConfig, CredentialKeysError> {
    let provider = provider();
    let roots = Arc::clone(&credentials.roots);
    let chain = WebPkiClientVerifier::builder_with_provider(roots, Arc::clone(&provider));
    let chain = match client_certificates {
        ClientCertificates::Required => chain,
        ClientCertificates::Optional => chain.allow_unauthenticated(),
    };
    let chain = chain.build()?;
    let verifier = Arc::new(UserVerifier { chain, revoked: revoked.clone() });
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])?
        .with_client_cert_verifier(verifier)
        .with_single_cert(credentials.chain.clone(), credentials.key.clone_key())?;
    // A resumed session would not be checked against later revocations.
    config.send_tls13_tickets = 0;
    config.session_storage = Arc::new(NoServerSessionStorage {});
    Ok(config)
}

impl fmt::Debug for UserKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UserKeys")
    }
}

impl fmt::Debug for ServerKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ServerKeys")
    }
}

/// Verifies the chain of a user's certificate, and that no part of it has been revoked.
#[derive(Debug)]
struct UserVerifier {
    chain: Arc<dyn ClientCertVerifier>,
    revoked: Revocations,
}

impl ClientCertVerifier for UserVerifier {
    fn client_auth_mandatory(&self) -> bool {
        self.chain.client_auth_mandatory()
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        // A user with a certificate of another authority presents it, and learns why it is refused.
        &[]
    }

    fn verify_client_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        let verified = self.chain.verify_client_cert(certificate, intermediates, now)?;
        let mut shown = vec![certificate];
        shown.extend(intermediates);
        match self.revoked.is_any_revoked(&shown) {
            Some(false) => Ok(verified),
            Some(true) => Err(CertificateError::Revoked.into()),
            None => Err(CertificateError::BadEncoding.into()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.chain.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.chain.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.chain.supported_verify_schemes()
    }
}
