//! The authority: a folder with its key, its certificate, the index of all certificates, and the revocation list.

use std::fmt;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use gridrpc_sys::safe_path;
use rcgen::{KeyPair, PublicKeyData as _};

use crate::error::file_error;
use crate::files::{self, FolderLock, PRIVATE, PUBLIC};
use crate::index::{self, CertificateRole, Issued, now};
use crate::leaf::encode;
use crate::request::VerifiedRequest;
use crate::signing::{LeafRequest, SigningKeys};
use crate::tokens::{self, TokenRecord};
use crate::{AuthorityError, names};

/// The name in the certificate of the service. No server has it, so none can pose as the authority; and as its
/// address does not matter, the service may be reached through any other machine.
pub(crate) const SERVICE_NAME: &str = "enrolment.gridrpc.invalid";

/// A certificate authority. Any number of processes may use one at the same time.
pub struct Authority {
    folder: PathBuf,
    pub(crate) keys: SigningKeys,
}

/// What the authority decides about a request.
#[derive(Clone, Debug)]
pub struct SignOptions {
    /// Name of the user, instead of the one in the request.
    pub user: Option<String>,
    /// Groups of the user.
    pub groups: Vec<String>,
    /// Validity in days.
    pub days: u32,
}

/// A new certificate.
#[derive(Clone, Debug)]
pub struct Signed {
    /// The certificate, followed by that of the authority, PEM.
    pub pem: String,
    /// Its record.
    pub issued: Issued,
}

/// The credentials of a server, PEM.
#[derive(Clone)]
pub struct ServerFiles {
    /// The certificate.
    pub certificate: String,
    /// Its private key.
    pub key: String,
    /// The certificate of the authority.
    pub authority: String,
    /// The record of the certificate.
    pub issued: Issued,
}

/// `$XDG_DATA_HOME/gridrpc/ca`.
#[must_use]
pub fn default_folder() -> Option<PathBuf> {
    let named = std::env::var_os("XDG_DATA_HOME").map(PathBuf::from);
    // The standard says to ignore a path that is not absolute.
    let data = named.filter(|path| path.is_absolute());
    let data = data.or_else(|| Some(safe_path::home()?.join(".local/share")))?;
    Some(data.join("gridrpc/ca"))
}

impl Default for SignOptions {
    fn default() -> SignOptions {
        SignOptions { user: None, groups: Vec::new(), days: 365 }
    }
}

impl Authority {
    /// Default validity of a server's certificate, days.
    pub const SERVER_DAYS: u32 = 825;

    /// Creates an authority in a folder. Other users can read its certificate and its revocation list.
    ///
    /// # Errors
    /// When the folder contains an authority, or cannot be written.
    pub fn create(folder: &Path, name: &str) -> Result<Authority, AuthorityError> {
        if name.trim().is_empty() || name.len() > 64 || name.chars().any(char::is_control) {
            return Err(AuthorityError::BadName { kind: "authority", name: name.to_owned() });
        }
        safe_path::make_folder(folder)?;
        // A server that runs as another user reads the revocation list.
        fs::set_permissions(folder, Permissions::from_mode(0o711))
            .map_err(file_error("change the permissions of", folder))?;
        let _lock = FolderLock::acquire(folder)?;
        let file = folder.join(CERTIFICATE);
        if file.exists() {
            return Err(AuthorityError::Exists { folder: folder.to_owned() });
        }
        let keys = SigningKeys::generate(name)?;
        files::write(&folder.join(KEY), &keys.key_pem(), PRIVATE)?;
        let authority = Authority { folder: folder.to_owned(), keys };
        index::write::<Issued>(&authority.index(), &[])?;
        authority.write_revocations(&[])?;
        // Last: with this file the authority exists.
        files::write(&file, &authority.pem(), PUBLIC)?;
        Ok(authority)
    }

    /// Opens the authority in a folder.
    ///
    /// # Errors
    /// When there is none, or its files cannot be used.
    pub fn open(folder: &Path) -> Result<Authority, AuthorityError> {
        let file = folder.join(CERTIFICATE);
        if !file.exists() {
            return Err(AuthorityError::Missing { folder: folder.to_owned() });
        }
        let key_file = folder.join(KEY);
        safe_path::check(&file)?;
        safe_path::check(&key_file)?;
        let mode = fs::metadata(&key_file).map_err(file_error("read", &key_file))?.mode() & 0o777;
        if mode & 0o077 != 0 {
            return Err(AuthorityError::ExposedKey { file: key_file, mode });
        }
        let keys = SigningKeys::read(&files::read(&file)?, &files::read(&key_file)?)
            .map_err(|reason| AuthorityError::Unusable { folder: folder.to_owned(), reason })?;
        Ok(Authority { folder: folder.to_owned(), keys })
    }

    /// The folder of the authority.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The certificate of the authority, PEM.
    #[must_use]
    pub fn pem(&self) -> String {
        self.keys.certificate_pem()
    }

    /// The revocation list, for servers.
    #[must_use]
    pub fn revocation_list(&self) -> PathBuf {
        self.folder.join("revoked.pem")
    }

    /// Makes the key and the certificate of a server, which users reach under these names and addresses.
    ///
    /// # Errors
    /// When a name is not allowed, or a file cannot be written.
    pub fn issue_server(
        &self,
        name: &str,
        hosts: &[String],
        days: u32,
    ) -> Result<ServerFiles, AuthorityError> {
        names::check("server", name)?;
        if let Some(host) = hosts.iter().find(|host| host.eq_ignore_ascii_case(SERVICE_NAME)) {
            return Err(AuthorityError::BadHost { host: host.clone() });
        }
        if hosts.is_empty() {
            return Err(AuthorityError::NoHosts);
        }
        let key = KeyPair::generate()?;
        let request = LeafRequest {
            role: CertificateRole::Server,
            name,
            groups: &[],
            hosts,
            days,
            public_key: &key.subject_public_key_info(),
        };
        let _lock = self.lock()?;
        let (certificate, issued) = self.issue(&request)?;
        let certificate = encode(&certificate);
        Ok(ServerFiles { certificate, key: key.serialize_pem(), authority: self.pem(), issued })
    }

    /// Signs the request of a user, PEM.
    ///
    /// # Errors
    /// When the request is not valid, a name is not allowed, or a file cannot be written.
    pub fn sign(&self, request: &str, options: &SignOptions) -> Result<Signed, AuthorityError> {
        let request = VerifiedRequest::parse(request)?;
        let user = options.user.clone().or(request.user).ok_or(AuthorityError::NoUser)?;
        let _lock = self.lock()?;
        self.issue_user(&user, &options.groups, options.days, &request.public_key)
    }

    /// All certificates that the authority has issued, the oldest first.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub fn list(&self) -> Result<Vec<Issued>, AuthorityError> {
        index::read(&self.index())
    }

    /// Revokes the certificate with this serial number, or all valid ones of a user or server and the user's tokens.
    /// Returns the revoked certificates.
    ///
    /// # Errors
    /// When there is none, or a file cannot be written.
    pub fn revoke(&self, target: &str) -> Result<Vec<Issued>, AuthorityError> {
        let _lock = self.lock()?;
        let mut issued = self.list()?;
        let mut records = self.tokens()?;
        if tokens::cancel(&mut records, target) {
            index::write(&self.token_file(), &records)?;
        }
        let is_known = issued.iter().any(|one| one.is_called(target) && one.revoked.is_some());
        let mut revoked = Vec::new();
        for one in issued.iter_mut().filter(|one| one.is_called(target) && one.is_valid()) {
            one.revoked = Some(now());
            revoked.push(one.clone());
        }
        if revoked.is_empty() {
            // An earlier command may have ended before it could write the list.
            self.write_revocations(&issued)?;
            let target = target.to_owned();
            return Err(match is_known {
                true => AuthorityError::AlreadyRevoked { target },
                false => AuthorityError::NotFound { target },
            });
        }
        // The index first: each command rewrites the list from it.
        index::write(&self.index(), &issued)?;
        self.write_revocations(&issued)?;
        Ok(revoked)
    }

    /// Issues a new certificate for the key, names and groups of a valid or expired one, which stays valid until its
    /// end. `target`: its serial number, or the user or server if it has only one that is valid.
    ///
    /// # Errors
    /// When there is no such certificate, it has been revoked, or a file cannot be written.
    pub fn renew(&self, target: &str, days: u32) -> Result<Signed, AuthorityError> {
        let _lock = self.lock()?;
        let all = self.list()?;
        let old = choose(&all, target)?;
        let public_key = STANDARD.decode(&old.key).map_err(|error| AuthorityError::Damaged {
            file: self.index(),
            line: all.iter().position(|one| one == old).unwrap_or(0) + 1,
            reason: error.to_string(),
        })?;
        let request = LeafRequest {
            role: old.role,
            name: &old.name,
            groups: &old.groups,
            hosts: &old.hosts,
            days,
            public_key: &public_key,
        };
        let (certificate, issued) = self.issue(&request)?;
        Ok(self.signed(&certificate, issued))
    }

    pub(crate) fn issue_user(
        &self,
        user: &str,
        groups: &[String],
        days: u32,
        public_key: &[u8],
    ) -> Result<Signed, AuthorityError> {
        names::check("user", user)?;
        groups.iter().try_for_each(|group| names::check("group", group))?;
        let request = LeafRequest {
            role: CertificateRole::User,
            name: user,
            groups,
            hosts: &[],
            days,
            public_key,
        };
        let (certificate, issued) = self.issue(&request)?;
        Ok(self.signed(&certificate, issued))
    }

    fn signed(&self, certificate: &[u8], issued: Issued) -> Signed {
        Signed { pem: encode(certificate) + &self.pem(), issued }
    }

    /// Issues a certificate and adds it to the index. The lock has to be held.
    fn issue(&self, request: &LeafRequest<'_>) -> Result<(Vec<u8>, Issued), AuthorityError> {
        let (certificate, issued) = self.keys.issue(request, &self.folder)?;
        let mut all = self.list()?;
        all.push(issued.clone());
        // Before the certificate is handed out: each one that exists can be revoked.
        index::write(&self.index(), &all)?;
        self.write_revocations(&all)?;
        Ok((certificate, issued))
    }

    /// Writes the revocation list. Each command that changes something renews it.
    fn write_revocations(&self, issued: &[Issued]) -> Result<(), AuthorityError> {
        files::write(&self.revocation_list(), &self.keys.revocation_list(issued)?, PUBLIC)
    }

    pub(crate) fn lock(&self) -> Result<FolderLock, AuthorityError> {
        FolderLock::acquire(&self.folder)
    }

    fn index(&self) -> PathBuf {
        self.folder.join("index.jsonl")
    }

    pub(crate) fn token_file(&self) -> PathBuf {
        self.folder.join("tokens.jsonl")
    }

    pub(crate) fn tokens(&self) -> Result<Vec<TokenRecord>, AuthorityError> {
        index::read(&self.token_file())
    }
}

impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authority").field("folder", &self.folder).finish_non_exhaustive()
    }
}

impl fmt::Debug for ServerFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The key is secret.
        f.debug_struct("ServerFiles").field("issued", &self.issued).finish_non_exhaustive()
    }
}

const CERTIFICATE: &str = "authority.pem";
const KEY: &str = "key.pem";

/// The certificate that a serial number or a name means.
fn choose<'a>(all: &'a [Issued], target: &str) -> Result<&'a Issued, AuthorityError> {
    let name = || target.to_owned();
    if let Some(one) = all.iter().find(|one| one.serial.eq_ignore_ascii_case(target)) {
        return match one.revoked {
            None => Ok(one),
            Some(_) => Err(AuthorityError::AlreadyRevoked { target: name() }),
        };
    }
    let valid: Vec<&Issued> =
        all.iter().filter(|one| one.is_called(target) && one.is_valid()).collect();
    match valid[..] {
        [one] => Ok(one),
        [] => Err(AuthorityError::NotFound { target: name() }),
        [newest, .., last] if valid.iter().all(|one| one.key == newest.key) => Ok(last),
        _ => Err(AuthorityError::Ambiguous { target: name(), count: valid.len() }),
    }
}
