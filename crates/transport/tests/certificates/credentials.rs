//! Credentials in files: kinds of keys, and their problems.

use std::fs;
use std::process::Command;
use std::time::SystemTime;

use gridrpc_transport::certificates::{Credentials, CredentialsError, Revocations, UserKeys};
use rcgen::KeyPair;

use crate::authority::{Authority, CertificateRequest, DAY, Folder, SERVER, Server, USER, write};

fn folder() -> Folder {
    let authority = Authority::new("authority");
    authority.write(&USER, &authority)
}

fn error(folder: &Folder) -> CredentialsError {
    Credentials::read(&folder.files()).unwrap_err()
}

#[test]
fn missing_files_are_named() {
    let folder = folder();
    fs::remove_file(folder.files().authority).unwrap();
    let error = error(&folder);
    assert!(
        matches!(&error, CredentialsError::Missing { file } if *file == folder.files().authority)
    );
    assert!(error.to_string().contains("authority.pem` does not exist"), "{error}");
}

#[test]
fn files_that_are_not_regular_cannot_be_read() {
    let folder = folder();
    let certificate = folder.files().certificate;
    fs::remove_file(&certificate).unwrap();
    // Opening it must not wait for a writer.
    nix::unistd::mkfifo(&certificate, nix::sys::stat::Mode::S_IRUSR).unwrap();
    let error = error(&folder);
    assert!(matches!(error, CredentialsError::Unreadable { .. }), "{error}");
}

#[test]
fn a_key_that_others_can_read_is_refused() {
    let folder = folder();
    let key = fs::read_to_string(folder.files().key).unwrap();
    for mode in [0o640, 0o604, 0o660] {
        write(&folder.files().key, &key, mode);
        let error = error(&folder);
        assert!(matches!(error, CredentialsError::Exposed { mode: shown, .. } if shown == mode));
        let file = folder.files().key;
        assert!(error.to_string().contains(&format!("chmod 600 {}", file.display())), "{error}");
    }
}

#[test]
fn an_authority_that_others_can_change_is_refused() {
    let folder = folder();
    let authority = fs::read_to_string(folder.files().authority).unwrap();
    write(&folder.files().authority, &authority, 0o666);
    assert!(matches!(error(&folder), CredentialsError::Unsafe(_)));
}

#[test]
fn contents_that_are_not_what_they_should_be_are_named() {
    let folder = folder();
    let files = folder.files();
    let (certificate, key) =
        (fs::read_to_string(&files.certificate).unwrap(), fs::read_to_string(&files.key).unwrap());
    write(&files.certificate, "hello", 0o644);
    assert!(matches!(error(&folder), CredentialsError::NotPem { .. }));
    write(&files.certificate, &certificate.replace("MII", "!!!"), 0o644);
    assert!(matches!(error(&folder), CredentialsError::NotPem { .. }));
    write(&files.certificate, "", 0o644);
    assert!(matches!(error(&folder), CredentialsError::Empty { expected: "certificate", .. }));
    write(&files.certificate, &certificate, 0o644);
    write(&files.key, &certificate, 0o600);
    assert!(matches!(error(&folder), CredentialsError::Empty { expected: "private key", .. }));
    write(&files.key, &key.replace("PRIVATE", "ENCRYPTED PRIVATE"), 0o600);
    let text = error(&folder).to_string();
    assert!(text.contains("openssl pkey"), "{text}");
    write(&files.key, &KeyPair::generate().unwrap().serialize_pem(), 0o600);
    assert!(matches!(error(&folder), CredentialsError::Mismatch { .. }));
    write(&files.key, &key, 0o600);
    write(&files.authority, &key, 0o644);
    assert!(matches!(error(&folder), CredentialsError::Empty { expected: "certificate", .. }));
    let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    write(&files.authority, broken, 0o644);
    assert!(matches!(error(&folder), CredentialsError::Unusable { .. }));
}

#[test]
fn certificates_outside_their_validity_say_what_the_clock_says() {
    let authority = Authority::new("authority");
    let old =
        authority.write(&CertificateRequest { valid: (-9 * DAY, -2 * DAY), ..USER }, &authority);
    let CredentialsError::Expired { until, now, .. } = error(&old) else { panic!() };
    assert!(until < now && now <= SystemTime::now());
    let text = error(&old).to_string();
    assert!(text.contains("the clock of this host says 20"), "{text}");
    let new =
        authority.write(&CertificateRequest { valid: (2 * DAY, 9 * DAY), ..USER }, &authority);
    assert!(matches!(error(&new), CredentialsError::NotYetValid { .. }));
}

/// Runs openssl, as an existing authority would.
fn openssl(folder: &Folder, arguments: &str) {
    let mut command = Command::new("openssl");
    let output = command.args(arguments.split(' ')).current_dir(&folder.0).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn keys_of_other_kinds_connect() {
    let authority = Authority::new("authority");
    let server = Server::new(&authority);
    let new_key = [
        "genrsa -traditional -out key.pem 2048",
        "genrsa -out key.pem 2048",
        "ecparam -name secp384r1 -genkey -out key.pem",
        "genpkey -algorithm ed25519 -out key.pem",
    ];
    let marks = ["RSA PRIVATE KEY", "BEGIN PRIVATE KEY", "EC PRIVATE KEY", "BEGIN PRIVATE KEY"];
    for (arguments, mark) in new_key.iter().zip(marks) {
        let folder = authority.write(&USER, &authority);
        fs::remove_file(folder.files().key).unwrap();
        openssl(&folder, arguments);
        assert!(fs::read_to_string(folder.files().key).unwrap().contains(mark));
        write(&folder.0.join("root.pem"), &authority.certificate, 0o644);
        write(&folder.0.join("root.key"), &authority.issuer.key().serialize_pem(), 0o600);
        write(&folder.0.join("extensions"), "extendedKeyUsage=clientAuth\n", 0o600);
        openssl(
            &folder,
            "req -new -key key.pem -subj /OU=chemistry/OU=physics/CN=bob -out new.csr",
        );
        openssl(
            &folder,
            "x509 -req -in new.csr -CA root.pem -CAkey root.key -set_serial 0x0012ab -days 2 -extfile \
             extensions -out certificate.pem",
        );
        let credentials = Credentials::read(&folder.files()).unwrap();
        let keys = UserKeys::new(&credentials).unwrap();
        let _connection = server.dial(&keys).unwrap();
        let identity = server.admitted.recv().unwrap().identity.unwrap();
        assert_eq!(identity.user, "bob");
        assert_eq!(identity.groups, ["chemistry", "physics"]);
        assert_eq!(identity.serial, "12ab");
        assert!(identity.until > SystemTime::now());
    }
}

#[test]
fn chains_with_intermediate_authorities_connect() {
    let root = Authority::new("root");
    let middle = root.intermediate("middle", 9);
    let server = Server::new(&root);
    let folder = middle.write(&USER, &root);
    let files = folder.files();
    let keys = |files| UserKeys::new(&Credentials::read(files).unwrap()).unwrap();
    assert!(server.dial(&keys(&files)).is_err());
    let chain = fs::read_to_string(&files.certificate).unwrap() + &middle.certificate;
    write(&files.certificate, &chain, 0o644);
    server.dial(&keys(&files)).unwrap();
    assert_eq!(server.admitted.recv().unwrap().identity.unwrap().user, "ann");
    // The server as well.
    let folder = middle.write(&SERVER, &root);
    let chain = fs::read_to_string(folder.files().certificate).unwrap() + &middle.certificate;
    write(&folder.files().certificate, &chain, 0o644);
    let credentials = Credentials::read(&folder.files()).unwrap();
    let server = Server::with(&credentials, Revocations::none());
    server.dial(&root.user(&USER)).unwrap();
}
