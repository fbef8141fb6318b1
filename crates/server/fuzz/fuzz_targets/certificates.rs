//! Parses any bytes as a token, a certificate, a signing request and a revocation list.

#![no_main]

use std::fs;
use std::path::PathBuf;
use std::sync::OnceLock;

use gridrpc_ca::{Authority, AuthorityError, EnrolmentToken};
use gridrpc_transport::certificates::{CredentialFiles, Credentials, Identity, Revocations};
use libfuzzer_sys::fuzz_target;
use rustls_pki_types::CertificateDer;

/// An authority, and the credentials of a server.
struct TestAuthority {
    authority: Authority,
    credentials: Credentials,
    list: PathBuf,
}

fn office() -> &'static TestAuthority {
    static OFFICE: OnceLock<TestAuthority> = OnceLock::new();
    OFFICE.get_or_init(|| {
        // scripts/fuzz removes it.
        let folder = std::env::temp_dir().join(format!("gridrpc-fuzz-{}", std::process::id()));
        let authority = Authority::create(&folder, "fuzz").expect("a new folder");
        let made = authority.issue_server("lab", &["localhost".into()], 1).expect("valid names");
        let files = CredentialFiles::in_folder(&folder.join("server"));
        fs::create_dir(folder.join("server")).expect("a new folder");
        fs::write(&files.certificate, &made.certificate).expect("a new file");
        fs::write(&files.authority, &made.authority).expect("a new file");
        fs::write(&files.key, &made.key).expect("a new file");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        fs::set_permissions(&files.key, mode).expect("its owner");
        let credentials = Credentials::read(&files).expect("valid files");
        TestAuthority { authority, credentials, list: folder.join("list.pem") }
    })
}

fn token(text: &str) {
    if let Ok(token) = text.parse::<EnrolmentToken>() {
        let again: EnrolmentToken = token.as_str().parse().expect("what parses has one form");
        assert_eq!(again, token);
        assert!(token.address().contains(':'));
    }
}

fn identity(bytes: &[u8]) {
    if let Ok(identity) = Identity::of(&CertificateDer::from(bytes)) {
        let names = [&identity.user].into_iter().chain(&identity.groups);
        for name in names {
            assert!(!name.is_empty() && !name.chars().any(char::is_control), "{name:?}");
        }
    }
}

fn request(text: &str) {
    // No token is valid, so a valid request ends there.
    let error = office().authority.enrol("token", text).expect_err("there is no token");
    let expected = matches!(
        error,
        AuthorityError::UnknownToken
            | AuthorityError::BadRequest { .. }
            | AuthorityError::BadSignature { .. }
    );
    assert!(expected, "{error}");
}

fn revocations(bytes: &[u8]) {
    let TestAuthority { credentials, list, .. } = office();
    fs::write(list, bytes).expect("its owner");
    // Nobody but the authority can sign one.
    Revocations::watch(list, credentials).map(|_| ()).err();
}

fuzz_target!(|bytes: &[u8]| {
    identity(bytes);
    revocations(bytes);
    if let Ok(text) = std::str::from_utf8(bytes) {
        token(text);
        request(text);
    }
});
