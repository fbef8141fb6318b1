//! Keys of a grid: two certificates that it creates itself, one for its client and one for its agents. Each side
//! accepts exactly the certificate that it knows, so that no authority has to sign them, and neither names nor clocks
//! matter.

use std::fmt;
use std::sync::Arc;

use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::ring::cipher_suite::{
    TLS13_AES_128_GCM_SHA256, TLS13_AES_256_GCM_SHA384, TLS13_CHACHA20_POLY1305_SHA256,
};
use rustls::crypto::{CryptoProvider, ring, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::server::NoServerSessionStorage;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::version::TLS13;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, DistinguishedName, ServerConfig,
    SignatureScheme,
};
use thiserror::Error;

use crate::TicketKeys;

/// Reason why there are no keys.
#[derive(Debug, Error)]
pub enum KeysError {
    /// They could not be created.
    #[error("no keys could be made: {0}")]
    Made(#[from] rcgen::Error),
    /// Those of a ticket are not valid keys.
    #[error("these keys cannot be used: {0}")]
    Unusable(#[from] rustls::Error),
}

/// The keys of a grid, for its client.
pub struct Keys {
    config: Arc<ServerConfig>,
    ticket: TicketKeys,
}

/// The keys of a grid, for its agents.
#[derive(Clone)]
pub struct AgentKeys(Arc<ClientConfig>);

impl Keys {
    /// Generates new keys.
    ///
    /// # Errors
    /// When the system has no random numbers.
    pub fn generate() -> Result<Keys, KeysError> {
        let (client, client_key) = certificate()?;
        let (agents, agents_key) = certificate()?;
        let config = server_config(&agents, client.clone(), client_key)?;
        let ticket = TicketKeys { client, certificate: agents, key: agents_key };
        Ok(Keys { config: Arc::new(config), ticket })
    }

    /// Keys for connections between agents, which all present the same certificate.
    ///
    /// # Errors
    /// When the ticket contains no valid keys.
    pub fn among_agents(ticket: &TicketKeys) -> Result<Keys, KeysError> {
        let TicketKeys { certificate, key, .. } = ticket.clone();
        let config = server_config(&certificate, certificate.clone(), key.clone())?;
        let ticket = TicketKeys { client: certificate.clone(), certificate, key };
        Ok(Keys { config: Arc::new(config), ticket })
    }

    /// The part of the keys that agents need.
    #[must_use]
    pub fn ticket(&self) -> TicketKeys {
        self.ticket.clone()
    }

    pub(super) fn config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.config)
    }
}

impl AgentKeys {
    /// The keys in a ticket.
    ///
    /// # Errors
    /// When they are not valid.
    pub fn new(ticket: &TicketKeys) -> Result<AgentKeys, KeysError> {
        let provider = provider();
        let known = PinnedCertificate::new(&ticket.client, &provider);
        let certificate = CertificateDer::from(ticket.certificate.clone());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&TLS13])?
            .dangerous()
            .with_custom_certificate_verifier(known)
            .with_client_auth_cert(vec![certificate], private(ticket.key.clone()))?;
        config.resumption = Resumption::disabled();
        config.enable_sni = false;
        Ok(AgentKeys(Arc::new(config)))
    }

    pub(super) fn config(&self) -> Arc<ClientConfig> {
        Arc::clone(&self.0)
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Keys")
    }
}

impl fmt::Debug for AgentKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AgentKeys")
    }
}

/// Presents `certificate`, and accepts clients that present `known`.
fn server_config(
    known: &[u8],
    certificate: Vec<u8>,
    key: Vec<u8>,
) -> Result<ServerConfig, rustls::Error> {
    let provider = provider();
    let known = PinnedCertificate::new(known, &provider);
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])?
        .with_client_cert_verifier(known)
        .with_single_cert(vec![CertificateDer::from(certificate)], private(key))?;
    // Each connection is made only once, so session resumption is useless.
    config.send_tls13_tickets = 0;
    config.session_storage = Arc::new(NoServerSessionStorage {});
    Ok(config)
}

/// A self-signed certificate and its private key (PKCS #8), DER.
fn certificate() -> Result<(Vec<u8>, Vec<u8>), KeysError> {
    let key = rcgen::KeyPair::generate()?;
    let certificate = rcgen::CertificateParams::new(["gridrpc".to_owned()])?.self_signed(&key)?;
    Ok((certificate.der().to_vec(), key.serialize_der()))
}

fn private(key: Vec<u8>) -> PrivateKeyDer<'static> {
    PrivatePkcs8KeyDer::from(key).into()
}

/// A placeholder name for the other end. It is neither sent nor checked.
pub(super) fn no_name() -> ServerName<'static> {
    ServerName::IpAddress(std::net::Ipv4Addr::UNSPECIFIED.into())
}

/// Set explicitly: a program that embeds a client may have set another provider for the process.
pub(super) fn provider() -> Arc<CryptoProvider> {
    // The fastest first, on processors with instructions for it.
    let cipher_suites =
        vec![TLS13_AES_128_GCM_SHA256, TLS13_AES_256_GCM_SHA384, TLS13_CHACHA20_POLY1305_SHA256];
    Arc::new(CryptoProvider { cipher_suites, ..ring::default_provider() })
}

/// Accepts one certificate and no other. The handshake's signature proves that the other end has the private key.
#[derive(Debug)]
struct PinnedCertificate {
    certificate: CertificateDer<'static>,
    provider: Arc<CryptoProvider>,
}

impl PinnedCertificate {
    fn new(certificate: &[u8], provider: &Arc<CryptoProvider>) -> Arc<PinnedCertificate> {
        let certificate = CertificateDer::from(certificate.to_vec());
        Arc::new(PinnedCertificate { certificate, provider: Arc::clone(provider) })
    }

    fn check(&self, shown: &CertificateDer<'_>) -> Result<(), rustls::Error> {
        // Certificates are public, so the comparison need not take constant time.
        if *shown == self.certificate {
            Ok(())
        } else {
            Err(CertificateError::ApplicationVerificationFailure.into())
        }
    }

    fn check_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

fn too_old() -> rustls::Error {
    rustls::Error::General("only TLS 1.3 is spoken".into())
}

impl ServerCertVerifier for PinnedCertificate {
    fn verify_server_cert(
        &self,
        shown: &CertificateDer<'_>,
        _others: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        self.check(shown).map(|()| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(too_old())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.check_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.schemes()
    }
}

impl ClientCertVerifier for PinnedCertificate {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        shown: &CertificateDer<'_>,
        _others: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        self.check(shown).map(|()| ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(too_old())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.check_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.schemes()
    }
}
