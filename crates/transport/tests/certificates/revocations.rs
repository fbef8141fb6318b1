//! Revocation lists that change while a server runs.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use gridrpc_transport::certificates::{Credentials, Revocations, RevocationsError, UserKeys};
use gridrpc_transport::dial::ServerFailure;
use gridrpc_transport::listener::HandshakeError;

use crate::authority::{Authority, CertificateRequest, Folder, SERVER, SOON, Server, USER, write};

struct TestRevocations {
    authority: Authority,
    folder: Folder,
    revocations: Revocations,
}

impl TestRevocations {
    fn new() -> TestRevocations {
        let authority = Authority::new("authority");
        let folder = Folder::new();
        write(&folder.0.join("revoked.pem"), &authority.revoke(&[]), 0o644);
        let credentials = authority.credentials(&SERVER, &authority);
        let file = folder.0.join("revoked.pem");
        let revocations = Revocations::watch(&file, &credentials).unwrap();
        TestRevocations { authority, folder, revocations }
    }

    fn file(&self) -> PathBuf {
        self.folder.0.join("revoked.pem")
    }

    fn server(&self) -> Server {
        let credentials = self.authority.credentials(&SERVER, &self.authority);
        Server::with(&credentials, self.revocations.clone())
    }
}

#[test]
fn a_revocation_reaches_a_running_server_and_live_connections_within_a_second() {
    let watched = TestRevocations::new();
    let server = watched.server();
    let (ann, bob) = (
        CertificateRequest { serial: 7, ..USER },
        CertificateRequest { user: "bob", serial: 8, ..USER },
    );
    let (ann, bob) = (watched.authority.user(&ann), watched.authority.user(&bob));
    let _connection = server.dial(&ann).unwrap();
    let identity = server.admitted.recv().unwrap().identity.unwrap();
    assert!(!watched.revocations.is_revoked(&identity));
    let version = watched.revocations.version();
    write(&watched.file(), &watched.authority.revoke(&[7]), 0o644);
    let began = Instant::now();
    while !watched.revocations.is_revoked(&identity) {
        assert!(began.elapsed() < Duration::from_secs(1));
        thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(watched.revocations.version(), version + 1);
    let error = server.dial(&ann).unwrap_err();
    assert!(matches!(error.failure, ServerFailure::UserRevoked), "{error}");
    assert!(matches!(server.refusal(), HandshakeError::Revoked));
    server.dial(&bob).unwrap();
    // A new list may revoke fewer certificates.
    write(&watched.file(), &watched.authority.revoke(&[]), 0o644);
    watched.revocations.refresh();
    assert!(!watched.revocations.is_revoked(&identity));
    server.dial(&ann).unwrap();
}

#[test]
fn a_wrong_list_is_reported_and_the_previous_one_stays_in_force() {
    let watched = TestRevocations::new();
    let server = watched.server();
    let ann = watched.authority.user(&CertificateRequest { serial: 7, ..USER });
    server.dial(&ann).unwrap();
    let identity = server.admitted.recv_timeout(SOON).unwrap().identity.unwrap();
    let good = watched.authority.revoke(&[7]);
    write(&watched.file(), &good, 0o644);
    watched.revocations.refresh();
    let foreign = Authority::new("foreign").revoke(&[]);
    // An authority with the same name, but another key.
    let forged = Authority::new("authority").revoke(&[]);
    type IsExpected = fn(&RevocationsError) -> bool;
    let cases: [(&str, IsExpected); 5] = [
        ("hello", |error| matches!(error, RevocationsError::File(_))),
        ("", |error| matches!(error, RevocationsError::File(_))),
        ("-----BEGIN X509 CRL-----\nAAAA\n-----END X509 CRL-----\n", |error| {
            matches!(error, RevocationsError::Malformed { .. })
        }),
        (&foreign, |error| matches!(error, RevocationsError::UnknownIssuer { .. })),
        (&forged, |error| matches!(error, RevocationsError::BadSignature { .. })),
    ];
    for (text, is_expected) in cases {
        write(&watched.file(), text, 0o644);
        watched.revocations.refresh();
        let error = watched.revocations.last_error().unwrap();
        assert!(is_expected(&error), "{error}");
        assert!(error.to_string().contains("revoked.pem"), "{error}");
        assert!(watched.revocations.is_revoked(&identity));
    }
    fs::remove_file(watched.file()).unwrap();
    watched.revocations.refresh();
    assert!(watched.revocations.last_error().unwrap().to_string().contains("does not exist"));
    assert!(watched.revocations.is_revoked(&identity));
    write(&watched.file(), &good, 0o644);
    fs::set_permissions(watched.file(), fs::Permissions::from_mode(0o666)).unwrap();
    watched.revocations.refresh();
    assert!(watched.revocations.last_error().is_some());
    fs::set_permissions(watched.file(), fs::Permissions::from_mode(0o644)).unwrap();
    watched.revocations.refresh();
    assert!(watched.revocations.last_error().is_none());
}

#[test]
fn a_serial_number_is_revoked_for_its_own_authority_only() {
    let (one, other) = (Authority::new("one"), Authority::new("other"));
    let folder = one.write(&SERVER, &one);
    let both = format!("{}{}", one.certificate, other.certificate);
    write(&folder.files().authority, &both, 0o644);
    let credentials = Credentials::read(&folder.files()).unwrap();
    let file = folder.0.join("revoked.pem");
    write(&file, &format!("{}{}", one.revoke(&[1]), other.revoke(&[2])), 0o644);
    let server = Server::with(&credentials, Revocations::watch(&file, &credentials).unwrap());
    let user = |authority: &Authority, serial| {
        let credentials = authority.credentials(&CertificateRequest { serial, ..USER }, &one);
        UserKeys::new(&credentials).unwrap()
    };
    server.dial(&user(&one, 2)).unwrap();
    server.dial(&user(&other, 1)).unwrap();
    assert!(server.dial(&user(&one, 1)).is_err());
    assert!(server.dial(&user(&other, 2)).is_err());
}

#[test]
fn certificates_of_a_revoked_intermediate_authority_are_refused() {
    let root = Authority::new("root");
    let middle = root.intermediate("middle", 9);
    let folder = middle.write(&USER, &root);
    let chain = fs::read_to_string(folder.files().certificate).unwrap() + &middle.certificate;
    write(&folder.files().certificate, &chain, 0o644);
    let credentials = Credentials::read(&folder.files()).unwrap();
    let user = UserKeys::new(&credentials).unwrap();
    let file = folder.0.join("revoked.pem");
    write(&file, &root.revoke(&[]), 0o644);
    let credentials = root.credentials(&SERVER, &root);
    let revocations = Revocations::watch(&file, &credentials).unwrap();
    let server = Server::with(&credentials, revocations.clone());
    server.dial(&user).unwrap();
    write(&file, &root.revoke(&[9]), 0o644);
    revocations.refresh();
    let error = server.dial(&user).unwrap_err();
    assert!(matches!(error.failure, ServerFailure::UserRevoked), "{error}");
}

#[test]
fn a_server_does_not_start_without_its_list() {
    let authority = Authority::new("authority");
    let credentials = authority.credentials(&SERVER, &authority);
    let error = Revocations::watch(&PathBuf::from("/nonexistent.pem"), &credentials).unwrap_err();
    assert!(matches!(error, RevocationsError::File(_)));
}
