//! The user's machine: makes the private key and the request, and installs certificates.

use std::path::{Path, PathBuf};

use gridrpc_sys::safe_path;
use gridrpc_transport::certificates::{CredentialFiles, Credentials, Identity};
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, PublicKeyData as _};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use x509_parser::prelude::{FromDer as _, X509Certificate};

use crate::files::{self, PRIVATE, PUBLIC};
use crate::leaf::encode;
use crate::{AuthorityError, names};

/// Makes a private key and a request for a certificate of this user in a folder. Returns the file of the request.
///
/// # Errors
/// When the folder contains a key, or a file cannot be written.
pub fn create_request(user: &str, folder: &Path) -> Result<PathBuf, AuthorityError> {
    let (key, request) = NewKey::create(Some(user), folder)?;
    let file = folder.join("request.pem");
    files::write(&file, &request, PUBLIC)?;
    key.keep();
    Ok(file)
}

/// A private key that is removed again, unless it is kept.
pub(crate) struct NewKey(Option<PathBuf>);

impl NewKey {
    /// Makes a private key in a folder, and a request, PEM, for a certificate. The request names no user if there is
    /// no `user`.
    pub(crate) fn create(
        user: Option<&str>,
        folder: &Path,
    ) -> Result<(NewKey, String), AuthorityError> {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        if let Some(user) = user {
            names::check("user", user)?;
            params.distinguished_name.push(DnType::CommonName, user);
        }
        safe_path::make_folder(folder)?;
        let key = KeyPair::generate()?;
        let request = params.serialize_request(&key)?.pem()?;
        let file = CredentialFiles::in_folder(folder).key;
        files::create(&file, &key.serialize_pem())?;
        Ok((NewKey(Some(file)), request))
    }

    pub(crate) fn keep(mut self) {
        self.0 = None;
    }
}

impl Drop for NewKey {
    fn drop(&mut self) {
        if let Some(file) = &self.0 {
            let _ = std::fs::remove_file(file);
        }
    }
}

/// Installs a user's certificate, and those of authorities, next to the user's key. Authorities that the user trusts
/// already stay. Returns the installed files.
///
/// # Errors
/// When the files contain no certificate for the key, or the credentials cannot be used.
pub fn install(pem_files: &[PathBuf], folder: &Path) -> Result<CredentialFiles, AuthorityError> {
    let mut given = Vec::new();
    for file in pem_files {
        given.extend(certificates(file, &files::read(file)?)?);
    }
    Ok(install_certificates(given, folder)?.0)
}

/// Installs certificates as [`install`] does. Returns the installed files and the user.
pub(crate) fn install_text(
    pem: &str,
    folder: &Path,
) -> Result<(CredentialFiles, Identity), AuthorityError> {
    install_certificates(certificates(Path::new("the answer of the authority"), pem)?, folder)
}

fn install_certificates(
    given: Vec<CertificateDer<'static>>,
    folder: &Path,
) -> Result<(CredentialFiles, Identity), AuthorityError> {
    let target = CredentialFiles::in_folder(folder);
    let key = KeyPair::from_pem(&files::read(&target.key)?)?;
    let mut authorities =
        certificates(&target.authority, &files::read_if_exists(&target.authority)?)?;
    let mut chain = Vec::new();
    for certificate in given {
        let unusable = |reason: String| AuthorityError::BadRequest { reason };
        let (_, parsed) =
            X509Certificate::from_der(&certificate).map_err(|error| unusable(error.to_string()))?;
        if parsed.public_key().raw == key.subject_public_key_info() {
            chain.insert(0, certificate);
        } else if parsed.is_ca() && parsed.subject() == parsed.issuer() {
            if !authorities.contains(&certificate) {
                authorities.push(certificate);
            }
        } else if parsed.is_ca() {
            chain.push(certificate);
        }
    }
    let is_users = |certificate: &CertificateDer<'_>| {
        X509Certificate::from_der(certificate)
            .is_ok_and(|(_, parsed)| parsed.public_key().raw == key.subject_public_key_info())
    };
    let Some(users) = chain.first().filter(|certificate| is_users(certificate)) else {
        return Err(AuthorityError::NoCertificate { key: target.key });
    };
    let identity = Identity::of(users)
        .map_err(|error| AuthorityError::BadRequest { reason: error.to_string() })?;
    if authorities.is_empty() {
        return Err(AuthorityError::NoAuthority { folder: folder.to_owned() });
    }
    // Only credentials that can be used replace the present ones.
    let trial = CredentialFiles {
        certificate: folder.join("certificate.pem.trial"),
        authority: folder.join("authority.pem.trial"),
        key: target.key.clone(),
    };
    let (chain, authorities) = (encode_all(&chain), encode_all(&authorities));
    files::write(&trial.certificate, &chain, PRIVATE)?;
    files::write(&trial.authority, &authorities, PRIVATE)?;
    let result = Credentials::read(&trial);
    for file in [&trial.certificate, &trial.authority] {
        let _ = std::fs::remove_file(file);
    }
    result?;
    files::write(&target.authority, &authorities, PRIVATE)?;
    files::write(&target.certificate, &chain, PRIVATE)?;
    Ok((target, identity))
}

fn encode_all(certificates: &[CertificateDer<'_>]) -> String {
    certificates.iter().map(|one| encode(one)).collect()
}

fn certificates(file: &Path, text: &str) -> Result<Vec<CertificateDer<'static>>, AuthorityError> {
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text.as_bytes()).collect();
    all.map_err(|error| {
        gridrpc_transport::certificates::CredentialsError::NotPem {
            file: file.to_owned(),
            reason: error.to_string(),
        }
        .into()
    })
}
