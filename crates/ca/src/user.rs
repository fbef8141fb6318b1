//! The user's machine: makes the private key and the request, and installs certificates.

use std::path::{Path, PathBuf};

use gridrpc_sys::safe_path;
use gridrpc_transport::certificates::{CredentialFiles, Credentials};
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, PublicKeyData as _};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use x509_parser::prelude::{FromDer as _, X509Certificate};

use crate::files::{self, PUBLIC};
use crate::leaf::encode;
use crate::{AuthorityError, names};

/// `$XDG_CONFIG_HOME/gridrpc/credentials`.
#[must_use]
pub fn credentials_folder() -> Option<PathBuf> {
    let named = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from);
    // The standard says to ignore a path that is not absolute.
    let config = named.filter(|path| path.is_absolute());
    let config = config.or_else(|| Some(safe_path::home()?.join(".config")))?;
    Some(config.join("gridrpc/credentials"))
}

/// Makes a private key and a request for a certificate of this user in a folder. Returns the file of the request.
///
/// # Errors
/// When the folder contains a key, or a file cannot be written.
pub fn create_request(user: &str, folder: &Path) -> Result<PathBuf, AuthorityError> {
    names::check("user", user)?;
    safe_path::make_folder(folder)?;
    let key = KeyPair::generate()?;
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, user);
    let request = params.serialize_request(&key)?.pem()?;
    files::create(&CredentialFiles::in_folder(folder).key, &key.serialize_pem())?;
    let file = folder.join("request.pem");
    files::write(&file, &request, PUBLIC)?;
    Ok(file)
}

/// Installs a user's certificate, and those of authorities, next to the user's key. Authorities that the user trusts
/// already stay. Returns the installed files.
///
/// # Errors
/// When the files contain no certificate for the key, or the credentials cannot be used.
pub fn install(pem_files: &[PathBuf], folder: &Path) -> Result<CredentialFiles, AuthorityError> {
    let target = CredentialFiles::in_folder(folder);
    let key = KeyPair::from_pem(&files::read(&target.key)?)?;
    let mut given = Vec::new();
    for file in pem_files {
        given.extend(certificates(file, &files::read(file)?)?);
    }
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
    if !chain.first().is_some_and(is_users) {
        return Err(AuthorityError::NoCertificate { key: target.key });
    }
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
    files::write(&trial.certificate, &chain, PUBLIC)?;
    files::write(&trial.authority, &authorities, PUBLIC)?;
    let result = Credentials::read(&trial);
    for file in [&trial.certificate, &trial.authority] {
        let _ = std::fs::remove_file(file);
    }
    result?;
    files::write(&target.authority, &authorities, PUBLIC)?;
    files::write(&target.certificate, &chain, PUBLIC)?;
    Ok(target)
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
