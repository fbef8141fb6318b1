//! Certificates that their authority has revoked, from a file that may change at any time.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use gridrpc_sys::lock;
use rustls::RootCertStore;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer};
use rustls::server::WebPkiClientVerifier;
use x509_parser::prelude::{CertificateRevocationList, FromDer as _, X509Certificate, X509Name};

use super::identity::serial_text;
use super::pem::{self, FileAccess};
use super::{Credentials, Identity, RevocationsError};

/// The revoked certificates of one or more authorities. Clones share their state.
#[derive(Clone)]
pub struct Revocations(Option<Arc<RevocationWatch>>);

/// Shortest time between two checks whether the file has changed.
const INTERVAL: Duration = Duration::from_millis(200);
/// Largest size of a file.
const LIMIT: u64 = 64 << 20;

struct RevocationWatch {
    file: PathBuf,
    /// Certificates of the authorities that may revoke.
    issuers: Vec<CertificateDer<'static>>,
    roots: Arc<RootCertStore>,
    state: Mutex<RevocationState>,
}

struct RevocationState {
    revoked: Revoked,
    /// Number of lists that have come into force.
    version: u64,
    /// The file as it was read. `None`: it has to be read again.
    stamp: Option<Stamp>,
    checked: Instant,
    error: Option<Arc<RevocationsError>>,
}

/// Serial numbers by the name of their issuer.
type Revoked = HashMap<Vec<u8>, HashSet<String>>;

/// Distinguishes versions of a file: inode, size, times of modification and change.
type Stamp = (u64, u64, [i64; 4]);

impl Revocations {
    /// No certificate is revoked.
    #[must_use]
    pub fn none() -> Revocations {
        Revocations(None)
    }

    /// Reads the revocation lists in a PEM file, and again whenever it has changed. The authorities of the
    /// `credentials` may issue them.
    ///
    /// # Errors
    /// When the file cannot be read, or is no list of these authorities.
    pub fn watch(file: &Path, credentials: &Credentials) -> Result<Revocations, RevocationsError> {
        let issuers = credentials.authorities.iter().chain(credentials.chain.iter().skip(1));
        let issuers: Vec<_> = issuers.cloned().collect();
        let roots = Arc::clone(&credentials.roots);
        let (stamp, revoked) = read(file, &issuers, &roots).map_err(|(_, error)| error)?;
        let state = RevocationState {
            revoked,
            version: 1,
            stamp: Some(stamp),
            checked: Instant::now(),
            error: None,
        };
        let (file, state) = (file.to_owned(), Mutex::new(state));
        Ok(Revocations(Some(Arc::new(RevocationWatch { file, issuers, roots, state }))))
    }

    /// Checks at once whether the file has changed.
    pub fn refresh(&self) {
        if let Some(watched) = &self.0 {
            watched.refresh(&mut lock(&watched.state));
        }
    }

    /// Whether the certificate of this user has been revoked.
    #[must_use]
    pub fn is_revoked(&self, identity: &Identity) -> bool {
        let Some(watched) = &self.0 else { return false };
        watched.with_current(|state| contains(&state.revoked, identity.issuer(), &identity.serial))
    }

    /// Number of lists that have come into force. When it changes, live connections have to be checked again.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.0.as_ref().map_or(0, |watched| watched.with_current(|state| state.version))
    }

    /// Reason why the present contents of the file are not in force.
    #[must_use]
    pub fn last_error(&self) -> Option<Arc<RevocationsError>> {
        self.0.as_ref()?.with_current(|state| state.error.clone())
    }

    /// Whether one of these certificates, in DER, has been revoked. `None`: one cannot be decoded.
    pub(super) fn is_any_revoked(&self, certificates: &[&CertificateDer<'_>]) -> Option<bool> {
        let Some(watched) = &self.0 else { return Some(false) };
        watched.with_current(|state| {
            for certificate in certificates {
                let (_, parsed) = X509Certificate::from_der(certificate).ok()?;
                let issuer = parsed.issuer().as_raw();
                if contains(&state.revoked, issuer, &serial_text(parsed.raw_serial())) {
                    return Some(true);
                }
            }
            Some(false)
        })
    }
}

impl RevocationWatch {
    fn with_current<T>(&self, use_state: impl FnOnce(&RevocationState) -> T) -> T {
        let mut state = lock(&self.state);
        if state.checked.elapsed() >= INTERVAL {
            self.refresh(&mut state);
        }
        use_state(&state)
    }

    fn refresh(&self, state: &mut RevocationState) {
        state.checked = Instant::now();
        let present = std::fs::metadata(&self.file).ok().map(|metadata| stamp(&metadata));
        if present.is_some() && present == state.stamp {
            return;
        }
        match read(&self.file, &self.issuers, &self.roots) {
            Ok((stamp, revoked)) => {
                state.revoked = revoked;
                state.version += 1;
                state.stamp = Some(stamp);
                state.error = None;
            }
            Err((stamp, error)) => {
                state.stamp = stamp;
                state.error = Some(Arc::new(error));
            }
        }
    }
}

impl fmt::Debug for Revocations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.0.as_ref().map(|watched| &watched.file);
        f.debug_tuple("Revocations").field(&file).finish()
    }
}

fn contains(revoked: &Revoked, issuer: &[u8], serial: &str) -> bool {
    revoked.get(issuer).is_some_and(|serials| serials.contains(serial))
}

fn stamp(metadata: &Metadata) -> Stamp {
    let times = [metadata.mtime(), metadata.mtime_nsec(), metadata.ctime(), metadata.ctime_nsec()];
    (metadata.ino(), metadata.size(), times)
}

/// Reads a file. An error comes with the stamp of the contents that are wrong, if they could be read.
fn read(
    path: &Path,
    issuers: &[CertificateDer<'static>],
    roots: &Arc<RootCertStore>,
) -> Result<(Stamp, Revoked), (Option<Stamp>, RevocationsError)> {
    let (file, metadata) =
        pem::open(path, FileAccess::Public).map_err(|error| (None, error.into()))?;
    let bytes = pem::read(path, &file, LIMIT).map_err(|error| (None, error.into()))?;
    // Taken before the contents: a change while they are read is noticed later.
    let stamp = stamp(&metadata);
    let revoked = parse(path, &bytes, issuers, roots).map_err(|error| (Some(stamp), error))?;
    Ok((stamp, revoked))
}

fn parse(
    path: &Path,
    bytes: &[u8],
    issuers: &[CertificateDer<'static>],
    roots: &Arc<RootCertStore>,
) -> Result<Revoked, RevocationsError> {
    let malformed = |reason: String| RevocationsError::Malformed { file: path.to_owned(), reason };
    let lists =
        pem::items::<CertificateRevocationListDer<'static>>(path, bytes, "revocation list")?;
    let mut revoked = Revoked::new();
    for list in &lists {
        // Refuses delta lists, indirect lists and unknown critical extensions.
        let builder =
            WebPkiClientVerifier::builder_with_provider(Arc::clone(roots), crate::keys::provider());
        builder.with_crls([list.clone()]).build().map_err(|error| malformed(error.to_string()))?;
        let (_, parsed) = CertificateRevocationList::from_der(list)
            .map_err(|error| malformed(error.to_string()))?;
        check_signature(path, &parsed, issuers)?;
        let serials = revoked.entry(parsed.issuer().as_raw().to_vec()).or_default();
        serials.extend(parsed.iter_revoked_certificates().map(|one| serial_text(one.raw_serial())));
    }
    Ok(revoked)
}

fn check_signature(
    path: &Path,
    list: &CertificateRevocationList<'_>,
    issuers: &[CertificateDer<'static>],
) -> Result<(), RevocationsError> {
    let file = path.to_owned();
    let mut is_known = false;
    for issuer in issuers {
        let Ok((_, issuer)) = X509Certificate::from_der(issuer) else { continue };
        if !same_name(issuer.subject(), list.issuer()) || !may_revoke(&issuer) {
            continue;
        }
        is_known = true;
        if list.verify_signature(issuer.public_key()).is_ok() {
            return Ok(());
        }
    }
    if is_known {
        return Err(RevocationsError::BadSignature { file });
    }
    Err(RevocationsError::UnknownIssuer { file, issuer: list.issuer().to_string() })
}

fn same_name(one: &X509Name<'_>, other: &X509Name<'_>) -> bool {
    one.as_raw() == other.as_raw()
}

fn may_revoke(issuer: &X509Certificate<'_>) -> bool {
    match issuer.key_usage() {
        Ok(Some(usage)) => usage.value.crl_sign(),
        Ok(None) => true,
        Err(_) => false,
    }
}
