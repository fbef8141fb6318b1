//! The certificate and the key of an authority, and what it signs with them.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, DistinguishedName,
    DnType, IsCa, Issuer, KeyIdMethod, KeyPair, KeyUsagePurpose, PublicKeyData as _,
    RevokedCertParams, SerialNumber,
};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use time::OffsetDateTime;
use x509_parser::prelude::{FromDer as _, X509Certificate};

use crate::error::file_error;
use crate::index::{CertificateRole, Issued, now};
use crate::leaf::{Leaf, encode};
use crate::{AuthorityError, names};

/// The certificate and the private key of an authority.
pub(crate) struct SigningKeys {
    certificate: CertificateDer<'static>,
    key: KeyPair,
}

/// A certificate to be issued.
pub(crate) struct LeafRequest<'a> {
    pub role: CertificateRole,
    pub name: &'a str,
    pub groups: &'a [String],
    pub hosts: &'a [String],
    pub days: u32,
    pub public_key: &'a [u8],
}

const DAY: u64 = 24 * 3600;
/// Validity of the authority's own certificate, and time until its revocation lists expire.
const LONG: u64 = 3650 * DAY;
/// Certificates are valid a little before they are made: clocks differ.
const CLOCK_MARGIN: u64 = 300;
/// Most days that a certificate can be valid.
const MOST_DAYS: u32 = 3650;

impl SigningKeys {
    /// A new key, and a certificate that it has signed itself.
    pub(crate) fn generate(name: &str) -> Result<SigningKeys, AuthorityError> {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        // A server may have the same name. Its certificate would seem to have signed itself.
        params.distinguished_name.push(DnType::OrganizationName, "gridrpc authority");
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        params.serial_number = Some(SerialNumber::from_slice(&new_serial()?));
        params.not_before = date(now().saturating_sub(CLOCK_MARGIN));
        params.not_after = date(now() + LONG);
        let certificate = params.self_signed(&key)?.der().clone();
        Ok(SigningKeys { certificate, key })
    }

    /// Decodes both. The error describes the problem.
    pub(crate) fn read(certificate: &str, key: &str) -> Result<SigningKeys, String> {
        let certificate = CertificateDer::from_pem_slice(certificate.as_bytes())
            .map_err(|error| error.to_string())?;
        let key = KeyPair::from_pem(key).map_err(|error| error.to_string())?;
        let (_, parsed) =
            X509Certificate::from_der(&certificate).map_err(|error| error.to_string())?;
        if parsed.public_key().raw != key.subject_public_key_info() {
            return Err("its key does not belong to its certificate".to_owned());
        }
        if key.algorithm() != &rcgen::PKCS_ECDSA_P256_SHA256 {
            return Err("its key is not an EC key on the curve P-256".to_owned());
        }
        Ok(SigningKeys { certificate, key })
    }

    pub(crate) fn certificate(&self) -> &CertificateDer<'static> {
        &self.certificate
    }

    pub(crate) fn certificate_pem(&self) -> String {
        encode(&self.certificate)
    }

    pub(crate) fn key_pem(&self) -> String {
        self.key.serialize_pem()
    }

    /// A certificate, DER, and its record. `folder`: the authority's, for errors.
    pub(crate) fn issue(
        &self,
        request: &LeafRequest<'_>,
        folder: &Path,
    ) -> Result<(Vec<u8>, Issued), AuthorityError> {
        if request.days == 0 || request.days > MOST_DAYS {
            return Err(AuthorityError::BadDays { days: request.days });
        }
        let (_, authority) = X509Certificate::from_der(&self.certificate).map_err(|error| {
            AuthorityError::Unusable { folder: folder.to_owned(), reason: error.to_string() }
        })?;
        let end = u64::try_from(authority.validity().not_after.timestamp()).unwrap_or(0);
        if end <= now() {
            return Err(AuthorityError::Expired { folder: folder.to_owned() });
        }
        let hosts: Result<Vec<_>, _> = request.hosts.iter().map(|host| names::host(host)).collect();
        let serial = new_serial()?;
        let from = now().saturating_sub(CLOCK_MARGIN);
        let until = (now() + u64::from(request.days) * DAY).min(end);
        let leaf = Leaf {
            serial: &serial,
            role: request.role,
            name: request.name,
            groups: request.groups,
            hosts: &hosts?,
            from: date(from),
            until: date(until),
            public_key: request.public_key,
        };
        let certificate = leaf.sign(&authority, &self.key)?;
        let issued = Issued {
            serial: serial.iter().map(|byte| format!("{byte:02x}")).collect(),
            role: request.role,
            name: request.name.to_owned(),
            groups: request.groups.to_vec(),
            hosts: request.hosts.to_vec(),
            from,
            until,
            revoked: None,
            key: STANDARD.encode(request.public_key),
        };
        Ok((certificate, issued))
    }

    /// The revocation list, PEM. Certificates that have expired need not be in it.
    pub(crate) fn revocation_list(&self, issued: &[Issued]) -> Result<String, AuthorityError> {
        let revoked = issued.iter().filter(|one| one.until.saturating_add(DAY) > now());
        let revoked = revoked.filter_map(|one| {
            Some(RevokedCertParams {
                serial_number: SerialNumber::from_slice(&decode_serial(&one.serial)),
                revocation_time: date(one.revoked?),
                reason_code: None,
                invalidity_date: None,
            })
        });
        let params = CertificateRevocationListParams {
            this_update: date(now().saturating_sub(CLOCK_MARGIN)),
            next_update: date(now() + LONG),
            crl_number: SerialNumber::from_slice(&now().to_be_bytes()),
            issuing_distribution_point: None,
            revoked_certs: revoked.collect(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        let issuer = Issuer::from_ca_cert_der(&self.certificate, &self.key)?;
        Ok(params.signed_by(&issuer)?.pem()?)
    }
}

/// A random serial number: positive, of 16 bytes, without zeros in front.
fn new_serial() -> Result<[u8; 16], AuthorityError> {
    let mut serial = gridrpc_sys::random::<16>().map_err(file_error("read", "/dev/urandom"))?;
    serial[0] = serial[0] & 0x3f | 0x40;
    Ok(serial)
}

fn decode_serial(serial: &str) -> Vec<u8> {
    let digits: Vec<u8> = serial.bytes().collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    digits.chunks(2).filter_map(byte).collect()
}

fn date(seconds: u64) -> OffsetDateTime {
    let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
    OffsetDateTime::from_unix_timestamp(seconds).unwrap_or(OffsetDateTime::UNIX_EPOCH)
}
