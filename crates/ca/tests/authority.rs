//! The authority with real connections, several processes, and damaged files.

use std::fs::{self, Permissions};
use std::net::{IpAddr, Ipv4Addr};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use gridrpc_ca::{
    Authority, AuthorityError, CertificateRole, SignOptions, create_request, install,
};
use gridrpc_transport::certificates::{
    CredentialFiles, Credentials, Revocations, ServerKeys, UserKeys,
};
use gridrpc_transport::dial::{ServerFailure, dial_server};
use gridrpc_transport::listener::{Admission, Admitted, Listener};

static NUMBER: AtomicU32 = AtomicU32::new(0);
const LONG: Duration = Duration::from_secs(8);

struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("gridrpc-authority-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o700)).unwrap();
        Folder(path)
    }

    fn authority(&self) -> Authority {
        Authority::create(&self.0.join("ca"), "test authority").unwrap()
    }

    fn request(&self, user: &str) -> String {
        fs::read_to_string(create_request(user, &self.0.join(user)).unwrap()).unwrap()
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let file = self.0.join(name);
        fs::write(&file, text).unwrap();
        file
    }

    /// Installs a certificate for a user who has made a request.
    fn install(&self, user: &str, pem: &str) -> UserKeys {
        let file = self.write(&format!("{user}.pem"), pem);
        let files = install(&[file], &self.0.join(user)).unwrap();
        UserKeys::new(&Credentials::read(&files).unwrap()).unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A server with a certificate of the authority.
fn serve(folder: &Folder, authority: &Authority) -> (Listener, Receiver<Admitted>, Revocations) {
    let hosts = ["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
    let made = authority.issue_server("server", &hosts, 30).unwrap();
    let files = CredentialFiles {
        certificate: folder.write("server.pem", &made.certificate),
        key: folder.write("server.key", &made.key),
        authority: folder.write("server.authority.pem", &made.authority),
    };
    fs::set_permissions(&files.key, Permissions::from_mode(0o600)).unwrap();
    let credentials = Credentials::read(&files).unwrap();
    let revoked = Revocations::watch(&authority.revocation_list(), &credentials).unwrap();
    let keys = ServerKeys::new(&credentials, revoked.clone()).unwrap();
    let admission = Admission::Certificate { keys, refused: Box::new(|_, _| ()) };
    let (admit, admitted) = channel();
    let addresses = [IpAddr::V4(Ipv4Addr::LOCALHOST)];
    let admit = move |one| drop(admit.send(one));
    (Listener::open(&addresses, None, admission, admit).unwrap(), admitted, revoked)
}

fn groups(names: &[&str]) -> Vec<String> {
    names.iter().map(ToString::to_string).collect()
}

#[test]
fn users_connect_with_signed_certificates_until_they_are_revoked() {
    let folder = Folder::new();
    let authority = folder.authority();
    let (listener, admitted, revoked) = serve(&folder, &authority);
    let options = SignOptions { groups: groups(&["chemistry", "staff"]), ..SignOptions::default() };
    let signed = authority.sign(&folder.request("ann"), &options).unwrap();
    let ann = folder.install("ann", &signed.pem);
    for host in ["localhost", "127.0.0.1"] {
        dial_server(host, listener.port(), &ann, LONG).unwrap();
        let identity = admitted.recv_timeout(LONG).unwrap().identity.unwrap();
        assert_eq!(identity.user, "ann");
        assert_eq!(identity.groups, ["chemistry", "staff"]);
        assert_eq!(identity.serial, signed.issued.serial);
    }
    let gone = authority.revoke("ann").unwrap();
    assert_eq!(gone.len(), 1);
    revoked.refresh();
    assert!(revoked.last_error().is_none(), "{:?}", revoked.last_error());
    let error = dial_server("localhost", listener.port(), &ann, LONG).unwrap_err();
    assert!(matches!(error.failure, ServerFailure::UserRevoked), "{error}");
    let error = authority.revoke("ann").unwrap_err();
    assert!(matches!(error, AuthorityError::AlreadyRevoked { .. }), "{error}");
    let error = authority.renew(&signed.issued.serial, 30).unwrap_err();
    assert!(matches!(error, AuthorityError::AlreadyRevoked { .. }), "{error}");
}

#[test]
fn openssl_accepts_a_server_with_the_name_of_its_authority() {
    let folder = Folder::new();
    let authority = Authority::create(&folder.0.join("lab"), "lab").unwrap();
    let server = authority.issue_server("lab", &["gpu.example".to_owned()], 30).unwrap();
    let output = std::process::Command::new("openssl")
        .args(["verify", "-x509_strict", "-purpose", "sslserver", "-CAfile"])
        .arg(authority.folder().join("authority.pem"))
        .arg(folder.write("one.pem", &server.certificate))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn openssl_accepts_the_certificates_and_the_list() {
    let folder = Folder::new();
    let authority = folder.authority();
    let signed = authority.sign(&folder.request("ann"), &SignOptions::default()).unwrap();
    authority.sign(&folder.request("bob"), &SignOptions::default()).unwrap();
    authority.revoke("bob").unwrap();
    let server = authority.issue_server("server", &["gpu.example".to_owned()], 30).unwrap();
    let verify = |text: &str, purpose: &str| {
        let file = folder.write("one.pem", text);
        let output = std::process::Command::new("openssl")
            .args(["verify", "-x509_strict", "-crl_check", "-purpose", purpose, "-CAfile"])
            .arg(authority.folder().join("authority.pem"))
            .arg("-CRLfile")
            .arg(authority.revocation_list())
            .arg(file)
            .output()
            .unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    assert_eq!(verify(&signed.pem, "sslclient"), (true, String::new()));
    assert_eq!(verify(&server.certificate, "sslserver"), (true, String::new()));
    assert!(!verify(&signed.pem, "sslserver").0);
    // OpenSSL takes a certificate whose issuer has its own name for one that has signed itself.
    authority.revoke("ann").unwrap();
    let (is_valid, text) = verify(&signed.pem, "sslclient");
    assert!(!is_valid && text.contains("revoked"), "{text}");
}

#[test]
fn a_token_gives_one_certificate() {
    let folder = Folder::new();
    let authority = folder.authority();
    let (listener, admitted, _) = serve(&folder, &authority);
    let staff = groups(&["staff"]);
    let token = authority.token("ann", &staff, Duration::from_secs(60)).unwrap();
    let records = fs::read_to_string(authority.folder().join("tokens.jsonl")).unwrap();
    assert!(!records.contains(&token[12..]));
    let request = folder.request("nobody");
    // A bad request does not use it up.
    assert!(authority.redeem(&token, "hello").is_err());
    let error = authority.redeem("gridrpc-ca1.AAAA", &request).unwrap_err();
    assert!(matches!(error, AuthorityError::UnknownToken), "{error}");
    let signed = authority.redeem(&format!(" {token}\n"), &request).unwrap();
    dial_server("localhost", listener.port(), &folder.install("nobody", &signed.pem), LONG)
        .unwrap();
    let identity = admitted.recv_timeout(LONG).unwrap().identity.unwrap();
    assert_eq!((identity.user.as_str(), identity.groups), ("ann", staff));
    let error = authority.redeem(&token, &request).unwrap_err();
    assert!(matches!(error, AuthorityError::UsedToken { .. }), "{error}");
    let old = authority.token("ann", &[], Duration::ZERO).unwrap();
    let error = authority.redeem(&old, &request).unwrap_err();
    assert!(matches!(error, AuthorityError::ExpiredToken { .. }), "{error}");
    let pending = authority.token("ann", &[], Duration::from_secs(60)).unwrap();
    authority.revoke("ann").unwrap();
    assert!(authority.redeem(&pending, &request).is_err());
}

#[test]
fn a_renewed_certificate_has_the_same_key_names_and_groups() {
    let folder = Folder::new();
    let authority = folder.authority();
    let (listener, admitted, _) = serve(&folder, &authority);
    let options = SignOptions { groups: groups(&["staff"]), days: 2, ..SignOptions::default() };
    let old = authority.sign(&folder.request("ann"), &options).unwrap();
    let new = authority.renew("ann", 300).unwrap();
    assert!(new.issued.until > old.issued.until + 200 * 24 * 3600);
    assert_ne!(new.issued.serial, old.issued.serial);
    assert_eq!(new.issued.key, old.issued.key);
    // The key on the user's machine fits.
    folder.install("ann", &old.pem);
    let ann = folder.install("ann", &new.pem);
    dial_server("localhost", listener.port(), &ann, LONG).unwrap();
    let identity = admitted.recv_timeout(LONG).unwrap().identity.unwrap();
    assert_eq!((identity.serial, identity.groups), (new.issued.serial, groups(&["staff"])));
    // A second renewal by name is of the newest one.
    assert_eq!(authority.renew("ann", 10).unwrap().issued.key, old.issued.key);
    let error = authority.renew("bob", 300).unwrap_err();
    assert!(matches!(error, AuthorityError::NotFound { .. }), "{error}");
    let server = authority.renew("server", 300).unwrap();
    assert_eq!(server.issued.role, CertificateRole::Server);
    assert_eq!(server.issued.hosts.len(), 3);
}

#[test]
fn commands_at_the_same_time_lose_nothing() {
    let folder = Folder::new();
    let authority = folder.authority();
    let request = folder.request("ann");
    let token = authority.token("ann", &[], Duration::from_secs(60)).unwrap();
    let place = authority.folder().to_owned();
    let redeemed: usize = thread::scope(|scope| {
        let tasks: Vec<_> = (0..4)
            .map(|number| {
                let (place, request, token) = (&place, &request, &token);
                scope.spawn(move || {
                    let authority = Authority::open(place).unwrap();
                    for _ in 0..5 {
                        let user = Some(format!("user{number}"));
                        let options = SignOptions { user, ..SignOptions::default() };
                        authority.sign(request, &options).unwrap();
                    }
                    usize::from(authority.redeem(token, request).is_ok())
                })
            })
            .collect();
        tasks.into_iter().map(|task| task.join().unwrap()).sum()
    });
    assert_eq!(redeemed, 1);
    assert_eq!(authority.list().unwrap().len(), 21);
}

#[test]
fn requests_and_names_that_are_not_valid_are_refused() {
    let folder = Folder::new();
    let authority = folder.authority();
    let request = folder.request("ann");
    let sign = |request: &str, user: &str, days| {
        let options = SignOptions { user: Some(user.to_owned()), days, ..SignOptions::default() };
        authority.sign(request, &options).map(|_| ()).unwrap_err()
    };
    assert!(matches!(sign("hello", "ann", 1), AuthorityError::BadRequest { .. }));
    assert!(matches!(sign(&authority.pem(), "ann", 1), AuthorityError::BadRequest { .. }));
    assert!(matches!(sign(&request, "../ann", 1), AuthorityError::BadName { .. }));
    assert!(matches!(sign(&request, "ann", 0), AuthorityError::BadDays { .. }));
    assert!(matches!(sign(&request, "ann", u32::MAX), AuthorityError::BadDays { .. }));
    // Another key than the one that has signed it.
    let middle = request.len() / 2;
    let changed: String = request
        .char_indices()
        .map(
            |(at, letter)| {
                if at == middle { if letter == 'A' { 'B' } else { 'A' } } else { letter }
            },
        )
        .collect();
    let error = sign(&changed, "ann", 1);
    assert!(
        matches!(error, AuthorityError::BadSignature { .. } | AuthorityError::BadRequest { .. }),
        "{error}"
    );
    let hosts = |hosts: &[&str]| authority.issue_server("server", &groups(hosts), 1).unwrap_err();
    assert!(matches!(hosts(&[]), AuthorityError::NoHosts));
    assert!(matches!(hosts(&["gpu:4000"]), AuthorityError::BadHost { .. }));
    assert_eq!(authority.list().unwrap(), []);
}

#[test]
fn files_of_the_authority_are_protected() {
    let folder = Folder::new();
    let authority = folder.authority();
    let place = authority.folder().to_owned();
    let mode = |name: &str| fs::metadata(place.join(name)).unwrap().permissions().mode() & 0o777;
    authority.token("ann", &[], LONG).unwrap();
    for (name, expected) in [
        ("key.pem", 0o600),
        ("index.jsonl", 0o600),
        ("tokens.jsonl", 0o600),
        ("revoked.pem", 0o644),
    ] {
        assert_eq!(mode(name), expected, "{name}");
    }
    let exists = Authority::create(&place, "other").unwrap_err();
    assert!(matches!(exists, AuthorityError::Exists { .. }), "{exists}");
    let open = || Authority::open(&place).map(|_| ()).unwrap_err();
    fs::set_permissions(place.join("key.pem"), Permissions::from_mode(0o640)).unwrap();
    assert!(matches!(open(), AuthorityError::ExposedKey { mode: 0o640, .. }));
    fs::set_permissions(place.join("key.pem"), Permissions::from_mode(0o600)).unwrap();
    fs::write(place.join("index.jsonl"), "{\n").unwrap();
    let error = authority.list().unwrap_err();
    assert!(matches!(error, AuthorityError::Damaged { line: 1, .. }), "{error}");
    let other = Folder::new();
    fs::write(place.join("key.pem"), fs::read(other.authority().folder().join("key.pem")).unwrap())
        .unwrap();
    assert!(matches!(open(), AuthorityError::Unusable { .. }));
    let missing = Authority::open(Path::new("/nonexistent")).unwrap_err();
    assert!(missing.to_string().contains("gridrpc ca init"), "{missing}");
}

#[test]
fn installing_what_does_not_fit_changes_nothing() {
    let folder = Folder::new();
    let authority = folder.authority();
    let signed = authority.sign(&folder.request("ann"), &SignOptions::default()).unwrap();
    folder.install("ann", &signed.pem);
    let (mine, place) = (folder.write("good.pem", &signed.pem), folder.0.join("ann"));
    let before = fs::read(place.join("certificate.pem")).unwrap();
    let other = authority.sign(&folder.request("bob"), &SignOptions::default()).unwrap();
    let error = install(&[folder.write("bob.pem", &other.pem)], &place).unwrap_err();
    assert!(matches!(error, AuthorityError::NoCertificate { .. }), "{error}");
    assert!(install(&[folder.write("text", "hello")], &place).is_err());
    assert_eq!(fs::read(place.join("certificate.pem")).unwrap(), before);
    // A second request must not replace the key.
    let error = create_request("ann", &place).unwrap_err();
    assert!(matches!(error, AuthorityError::KeyExists { .. }), "{error}");
    // Installing again adds no authority twice.
    install(&[mine], &place).unwrap();
    let authorities = fs::read_to_string(place.join("authority.pem")).unwrap();
    assert_eq!(authorities.matches("BEGIN CERTIFICATE").count(), 1);
}
