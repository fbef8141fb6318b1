//! Certificates for one-time tokens, and the certificate of the service that takes tokens.

use std::time::Duration;

use rcgen::{KeyPair, PublicKeyData as _};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use crate::authority::SERVICE_NAME;
use crate::authority::{Authority, SignOptions, Signed};
use crate::enrolment::{EnrolmentToken, fingerprint};
use crate::error::file_error;
use crate::index::{self, CertificateRole};
use crate::request::VerifiedRequest;
use crate::signing::LeafRequest;
use crate::tokens::{self, TokenRecord};
use crate::{AuthorityError, names};

impl Authority {
    /// Makes a token. Whoever presents it first, within this time, gets a certificate for this user.
    ///
    /// # Errors
    /// When a name is not allowed, or a file cannot be written.
    pub fn token(
        &self,
        user: &str,
        groups: &[String],
        valid: Duration,
    ) -> Result<String, AuthorityError> {
        let token = tokens::encode(&secret()?);
        self.add_token(TokenRecord::new(&token, user, groups, valid.as_secs()))?;
        Ok(token)
    }

    /// Makes a token as [`Authority::token`] does, for [`crate::enrol`] at the service at this address, `HOST:PORT`.
    ///
    /// # Errors
    /// When a name or the address is not allowed, or a file cannot be written.
    pub fn enrolment_token(
        &self,
        user: &str,
        groups: &[String],
        valid: Duration,
        address: &str,
    ) -> Result<EnrolmentToken, AuthorityError> {
        let authority = fingerprint(self.keys.certificate());
        let token = EnrolmentToken::new(&secret()?, &authority, address)?;
        self.add_token(TokenRecord::new(token.as_str(), user, groups, valid.as_secs()))?;
        Ok(token)
    }

    fn add_token(&self, record: TokenRecord) -> Result<(), AuthorityError> {
        names::check("user", &record.user)?;
        record.groups.iter().try_for_each(|group| names::check("group", group))?;
        let _lock = self.lock()?;
        let mut records = self.tokens()?;
        tokens::clean(&mut records);
        records.push(record);
        index::write(&self.token_file(), &records)
    }

    /// Signs a request for the user of a token, which becomes invalid. The name in the request does not matter.
    ///
    /// # Errors
    /// When the token is unknown, used or expired, or the request is not valid; it is not used up then.
    pub fn redeem(&self, token: &str, request: &str) -> Result<Signed, AuthorityError> {
        self.take_token(token, &VerifiedRequest { user: None, ..VerifiedRequest::parse(request)? })
    }

    /// Signs a request as [`Authority::redeem`] does, unless it names another user.
    ///
    /// # Errors
    /// As [`Authority::redeem`]; also for the name of another user.
    pub fn enrol(&self, token: &str, request: &str) -> Result<Signed, AuthorityError> {
        self.take_token(token, &VerifiedRequest::parse(request)?)
    }

    fn take_token(&self, token: &str, request: &VerifiedRequest) -> Result<Signed, AuthorityError> {
        let _lock = self.lock()?;
        let mut records = self.tokens()?;
        let (user, groups) = tokens::take(&mut records, token, request.user.clone())?;
        // First: after a crash in between there is no second certificate.
        index::write(&self.token_file(), &records)?;
        let days = SignOptions::default().days;
        self.issue_user(&user, &groups, days, &request.public_key)
    }

    /// The key and the certificates of the enrolment service. They exist in memory only, so nobody can steal them
    /// from a file, and nobody has to revoke them.
    pub(crate) fn service_certificate(
        &self,
    ) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), AuthorityError> {
        let key = KeyPair::generate()?;
        let request = LeafRequest {
            role: CertificateRole::Server,
            name: "enrolment",
            groups: &[],
            hosts: &[SERVICE_NAME.to_owned()],
            days: Authority::SERVER_DAYS,
            public_key: &key.subject_public_key_info(),
        };
        let (certificate, _) = self.keys.issue(&request, self.folder())?;
        let chain = vec![certificate.into(), self.keys.certificate().clone()];
        Ok((chain, PrivateKeyDer::Pkcs8(key.serialize_der().into())))
    }
}

/// The secret of a token.
fn secret() -> Result<[u8; 24], AuthorityError> {
    gridrpc_sys::random::<24>().map_err(file_error("read", "/dev/urandom"))
}
