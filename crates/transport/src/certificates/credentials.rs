//! Credentials: a certificate, its private key, and the authorities that are trusted.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use rustls::{InconsistentKeys, RootCertStore};
use x509_parser::prelude::{FromDer as _, X509Certificate};

use super::CredentialsError;
use super::pem::{self, CREDENTIALS_LIMIT, FileAccess};

/// The files of a user's or a server's credentials, in PEM format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CredentialFiles {
    /// The certificate, followed by those of intermediate authorities, if any.
    pub certificate: PathBuf,
    /// Its private key, PKCS #8, SEC 1 or PKCS #1. Only its owner may read it.
    pub key: PathBuf,
    /// Certificates of the trusted authorities.
    pub authority: PathBuf,
}

/// A certificate with its private key, and the authorities that are trusted to sign the other side's.
pub struct Credentials {
    pub(super) chain: Vec<CertificateDer<'static>>,
    pub(super) key: PrivateKeyDer<'static>,
    pub(super) authorities: Vec<CertificateDer<'static>>,
    pub(super) roots: Arc<RootCertStore>,
    /// Start and end of the validity of the certificate.
    pub(super) validity: (SystemTime, SystemTime),
}

impl CredentialFiles {
    /// The files `certificate.pem`, `key.pem` and `authority.pem` in a folder.
    #[must_use]
    pub fn in_folder(folder: &Path) -> CredentialFiles {
        CredentialFiles {
            certificate: folder.join("certificate.pem"),
            key: folder.join("key.pem"),
            authority: folder.join("authority.pem"),
        }
    }
}

impl Credentials {
    /// Reads credentials and checks that they can be used now.
    ///
    /// # Errors
    /// When a file cannot be read, is open to other users or is not what it should be, and when the certificate is
    /// not valid at the time of this host.
    pub fn read(files: &CredentialFiles) -> Result<Credentials, CredentialsError> {
        let chain = certificates(&files.certificate)?;
        let key = private_key(&files.key)?;
        let authorities = certificates(&files.authority)?;
        check_match(files, &chain, &key, &crate::keys::provider())?;
        let now = SystemTime::now();
        let times: Result<Vec<_>, _> =
            chain.iter().map(|one| check_time(&files.certificate, one, now)).collect();
        let validity = times?.first().copied().unwrap_or((now, now));
        let mut roots = RootCertStore::empty();
        for authority in &authorities {
            roots.add(authority.clone()).map_err(|error| CredentialsError::Unusable {
                file: files.authority.clone(),
                reason: error.to_string(),
            })?;
        }
        Ok(Credentials { chain, key, authorities, roots: Arc::new(roots), validity })
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The key is secret.
        f.write_str("Credentials")
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, CredentialsError> {
    let (file, _) = pem::open(path, FileAccess::Public)?;
    let bytes = pem::read(path, &file, CREDENTIALS_LIMIT)?;
    pem::items(path, &bytes, "certificate")
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, CredentialsError> {
    let (file, _) = pem::open(path, FileAccess::Private)?;
    let bytes = pem::read(path, &file, CREDENTIALS_LIMIT)?;
    let encrypted = [&b"BEGIN ENCRYPTED PRIVATE KEY"[..], b"Proc-Type: 4,ENCRYPTED"];
    if encrypted.iter().any(|mark| bytes.windows(mark.len()).any(|part| part == *mark)) {
        return Err(CredentialsError::EncryptedKey { file: path.to_owned() });
    }
    let mut keys = pem::items::<PrivateKeyDer<'static>>(path, &bytes, "private key")?;
    Ok(keys.swap_remove(0))
}

fn check_match(
    files: &CredentialFiles,
    chain: &[CertificateDer<'static>],
    key: &PrivateKeyDer<'static>,
    provider: &CryptoProvider,
) -> Result<(), CredentialsError> {
    let unusable = |file: &Path, error: rustls::Error| CredentialsError::Unusable {
        file: file.to_owned(),
        reason: error.to_string(),
    };
    let key = provider.key_provider.load_private_key(key.clone_key());
    let key = key.map_err(|error| unusable(&files.key, error))?;
    match CertifiedKey::new(chain.to_vec(), key).keys_match() {
        Ok(()) | Err(rustls::Error::InconsistentKeys(InconsistentKeys::Unknown)) => Ok(()),
        Err(rustls::Error::InconsistentKeys(_)) => Err(CredentialsError::Mismatch {
            certificate: files.certificate.clone(),
            key: files.key.clone(),
        }),
        Err(error) => Err(unusable(&files.certificate, error)),
    }
}

/// Checks that a certificate is valid now. Returns the start and the end of its validity.
fn check_time(
    path: &Path,
    certificate: &CertificateDer<'_>,
    now: SystemTime,
) -> Result<(SystemTime, SystemTime), CredentialsError> {
    let file = path.to_owned();
    let (_, parsed) = X509Certificate::from_der(certificate).map_err(|error| {
        CredentialsError::Unusable { file: file.clone(), reason: error.to_string() }
    })?;
    let validity = parsed.validity();
    let from = system_time(validity.not_before.timestamp());
    let until = system_time(validity.not_after.timestamp());
    if now < from {
        return Err(CredentialsError::NotYetValid { file, from, now });
    }
    if now > until {
        return Err(CredentialsError::Expired { file, until, now });
    }
    Ok((from, until))
}

/// A time in seconds since 1970; that of a certificate may be earlier.
pub(super) fn system_time(timestamp: i64) -> SystemTime {
    let distance = Duration::from_secs(timestamp.unsigned_abs());
    let time = match timestamp {
        0.. => UNIX_EPOCH.checked_add(distance),
        _ => UNIX_EPOCH.checked_sub(distance),
    };
    time.unwrap_or(UNIX_EPOCH)
}
