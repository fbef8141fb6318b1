//! Certificate signing requests (PKCS #10).

use rustls_pki_types::CertificateSigningRequestDer;
use rustls_pki_types::pem::PemObject as _;
use x509_parser::prelude::{FromDer as _, X509CertificationRequest};

use crate::AuthorityError;

/// A request whose sender has the private key.
pub(crate) struct VerifiedRequest {
    /// Common name of the subject, if there is exactly one.
    pub user: Option<String>,
    /// Public key (SubjectPublicKeyInfo), DER.
    pub public_key: Vec<u8>,
}

/// Longest request, bytes.
const LIMIT: usize = 64 << 10;

impl VerifiedRequest {
    /// Decodes a request, and checks that it is signed with its own key. Only the key and the user's name are used:
    /// groups and extensions are the authority's decision.
    pub(crate) fn parse(pem: &str) -> Result<VerifiedRequest, AuthorityError> {
        let bad = |reason: String| AuthorityError::BadRequest { reason };
        if pem.len() > LIMIT {
            return Err(bad(format!("it is longer than {LIMIT} bytes")));
        }
        let der = CertificateSigningRequestDer::from_pem_slice(pem.as_bytes())
            .map_err(|error| bad(error.to_string()))?;
        let (_, request) =
            X509CertificationRequest::from_der(&der).map_err(|error| bad(error.to_string()))?;
        request
            .verify_signature()
            .map_err(|error| AuthorityError::BadSignature { reason: error.to_string() })?;
        let info = &request.certification_request_info;
        let mut names = info.subject.iter_common_name();
        let user = match (names.next(), names.next()) {
            (Some(name), None) => name.as_str().ok().map(str::to_owned),
            _ => None,
        };
        Ok(VerifiedRequest { user, public_key: info.subject_pki.raw.to_vec() })
    }
}
