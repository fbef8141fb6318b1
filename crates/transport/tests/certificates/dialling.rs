//! Connections of users to a server, and what they learn when there is none.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use gridrpc_transport::certificates::{Credentials, Revocations, UserKeys};
use gridrpc_transport::dial::{DialStage, ServerFailure, dial_server};
use gridrpc_transport::listener::HandshakeError;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::authority::{
    Authority, CertificateRequest, DAY, Folder, LONG, SERVER, SOON, Server, USER, closed_port,
    write,
};

#[test]
fn a_user_connects_and_the_server_knows_who_it_is() {
    let authority = Authority::new("authority");
    let server = Server::new(&authority);
    let ann = authority.user(&CertificateRequest { group: Some("chemistry"), serial: 200, ..USER });
    for host in ["localhost", "127.0.0.1"] {
        let connection = dial_server(host, server.listener.port(), &ann, LONG).unwrap();
        let admitted = server.admitted.recv_timeout(SOON).unwrap();
        let identity = admitted.identity.unwrap();
        assert_eq!(identity.user, "ann");
        assert_eq!(identity.groups, ["chemistry"]);
        assert_eq!(identity.serial, "c8");
        let error = connection.receive_into(&mut [0]).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
        connection.send(b"hello", &[]).unwrap();
        let mut place = [0; 5];
        let began = Instant::now();
        while admitted.transport.receive_into(&mut place).is_err() {
            assert!(began.elapsed() < SOON);
        }
        assert_eq!(&place, b"hello");
    }
    assert_eq!(server.listener.refused(), 0);
}

#[test]
fn users_learn_why_the_server_refuses_their_certificate() {
    let authority = Authority::new("authority");
    let server = Server::new(&authority);
    // It trusts the server, but the server does not trust it. The foreign authority has the same name, or another.
    for name in ["authority", "foreign"] {
        let foreign = Authority::new(name);
        let keys = UserKeys::new(&foreign.credentials(&USER, &authority)).unwrap();
        let error = server.dial(&keys).unwrap_err();
        assert!(matches!(error.failure, ServerFailure::UserAuthority), "{error}");
        assert!(matches!(server.refusal(), HandshakeError::UnknownAuthority));
    }
    // The server has not read all of a long chain when it refuses it.
    let foreign = Authority::new("foreign");
    let folder = foreign.write(&USER, &authority);
    let chain = fs::read_to_string(folder.files().certificate).unwrap();
    write(&folder.files().certificate, &(chain + &foreign.certificate.repeat(60)), 0o644);
    let keys = UserKeys::new(&Credentials::read(&folder.files()).unwrap()).unwrap();
    let error = server.dial(&keys).unwrap_err();
    assert!(matches!(error.failure, ServerFailure::UserAuthority), "{error}");
    assert!(matches!(server.refusal(), HandshakeError::UnknownAuthority));
    // A certificate of a server is not one of a user.
    let keys = UserKeys::new(&authority.credentials(&SERVER, &authority)).unwrap();
    let error = server.dial(&keys).unwrap_err();
    assert!(matches!(error.failure, ServerFailure::UserRefused { .. }), "{error}");
    assert!(matches!(server.refusal(), HandshakeError::BadCertificate(_)));
    // A certificate that names no user.
    for user in ["", "line\nbreak"] {
        let keys =
            UserKeys::new(&authority.credentials(&CertificateRequest { user, ..USER }, &authority));
        let error = server.dial(&keys.unwrap()).unwrap_err();
        assert!(matches!(error.failure, ServerFailure::Closed), "{error}");
        assert!(matches!(server.refusal(), HandshakeError::NoIdentity(_)));
    }
    assert!(server.admitted.try_recv().is_err());
    assert_eq!(server.listener.refused(), 6);
}

#[test]
fn a_certificate_that_expires_while_the_user_runs_is_refused() {
    let authority = Authority::new("authority");
    let server = Server::new(&authority);
    let credentials =
        authority.credentials(&CertificateRequest { valid: (-DAY, 3), ..USER }, &authority);
    thread::sleep(Duration::from_secs(4));
    let error = server.dial(&UserKeys::new(&credentials).unwrap()).unwrap_err();
    let ServerFailure::UserExpired { until, now, .. } = error.failure else { panic!("{error}") };
    assert!(now > until);
    assert!(error.to_string().contains("\nhint: renew the certificate"), "{error}");
    let HandshakeError::Expired { until: end, now } = server.refusal() else { panic!() };
    assert!(end == until && now > end);
}

#[test]
fn users_refuse_servers_that_do_not_prove_who_they_are() {
    let authority = Authority::new("authority");
    let ann = authority.user(&USER);
    let foreign = Authority::new("foreign");
    let credentials = foreign.credentials(&SERVER, &authority);
    let server = Server::with(&credentials, Revocations::none());
    let error = server.dial(&ann).unwrap_err();
    assert!(matches!(error.failure, ServerFailure::UnknownAuthority), "{error}");
    assert!(matches!(server.refusal(), HandshakeError::PeerRefused(_)));
    let other = CertificateRequest { hosts: &["gpu.example", "10.0.0.1"], ..SERVER };
    let server = Server::with(&authority.credentials(&other, &authority), Revocations::none());
    for host in ["localhost", "127.0.0.1"] {
        let error = dial_server(host, server.listener.port(), &ann, LONG).unwrap_err();
        let ServerFailure::WrongName { names } = &error.failure else { panic!("{error}") };
        assert_eq!(names[..], ["gpu.example", "10.0.0.1"]);
        assert!(error.to_string().contains("\nhint: use one of these names"), "{error}");
    }
    // A user is not a server.
    let server = Server::with(&authority.credentials(&USER, &authority), Revocations::none());
    assert!(server.dial(&ann).is_err());
}

#[test]
fn hosts_and_ports_without_a_server_are_reported() {
    let ann = Authority::new("authority").user(&USER);
    let failure = |host: &str, port, time| dial_server(host, port, &ann, time).unwrap_err();
    let error = failure("localhost", closed_port(), LONG);
    assert!(matches!(error.failure, ServerFailure::Refused), "{error}");
    for host in ["no-such-host.invalid", "two words", ""] {
        let error = failure(host, 1, LONG);
        let is_unknown = matches!(error.failure, ServerFailure::UnknownHost { .. });
        let is_unresolved =
            matches!(error.failure, ServerFailure::Timeout { stage: DialStage::Resolving, .. });
        assert!(is_unknown || (is_unresolved && host.contains("invalid")), "{error}");
    }
    let mute = TcpListener::bind("127.0.0.1:0").unwrap();
    let limit = Duration::from_millis(300);
    let error = failure("127.0.0.1", mute.local_addr().unwrap().port(), limit);
    let ServerFailure::Timeout { after, stage: DialStage::Handshake } = error.failure else {
        panic!("{error}")
    };
    assert_eq!(after, limit);
    for greeting in ["SSH-2.0-OpenSSH_9.6\r\n", "HTTP/1.1 400 Bad Request\r\n\r\n"] {
        let other = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = other.local_addr().unwrap().port();
        let thread = thread::spawn(move || {
            let (mut stream, _) = other.accept().unwrap();
            stream.write_all(greeting.as_bytes()).unwrap();
            thread::sleep(Duration::from_millis(300));
        });
        let error = failure("127.0.0.1", port, LONG);
        assert!(matches!(error.failure, ServerFailure::NotTls), "{error}");
        thread.join().unwrap();
    }
}

/// Accepts one connection with TLS but without certificates of users, and sends this.
fn other_tls_server(folder: &Folder, greeting: &'static [u8]) -> u16 {
    let files = folder.files();
    let chain = vec![CertificateDer::from_pem_file(&files.certificate).unwrap()];
    let key = PrivateKeyDer::from_pem_file(&files.key).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut tls = rustls::ServerConnection::new(Arc::new(config)).unwrap();
        let mut stream = rustls::Stream::new(&mut tls, &mut stream);
        let _ = stream.write_all(greeting);
        // Keeps the connection until the client closes it.
        let _ = stream.read(&mut [0]);
    });
    port
}

#[test]
fn servers_of_other_programs_are_reported() {
    let authority = Authority::new("authority");
    let ann = authority.user(&USER);
    let folder = authority.write(&SERVER, &authority);
    let port = other_tls_server(&folder, b"220 mail.example\r\n");
    let error = dial_server("localhost", port, &ann, LONG).unwrap_err();
    assert!(matches!(error.failure, ServerFailure::NotGridrpc), "{error}");
    let port = other_tls_server(&folder, b"");
    let error = dial_server("localhost", port, &ann, Duration::from_millis(500)).unwrap_err();
    let ServerFailure::Timeout { stage: DialStage::Admission, .. } = error.failure else {
        panic!("{error}")
    };
}

#[test]
fn servers_with_an_old_version_of_tls_are_reported() {
    let authority = Authority::new("authority");
    let ann = authority.user(&USER);
    let folder = authority.write(&SERVER, &authority);
    let mut server = Command::new("openssl")
        .args(["s_server", "-accept", "127.0.0.1:0", "-tls1_2", "-cert", "certificate.pem"])
        .args(["-key", "key.pem"])
        .current_dir(&folder.0)
        // At the end of its input it would close the connection.
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
    let accept = lines.find_map(|line| Some(line.ok()?.strip_prefix("ACCEPT ")?.to_owned()));
    let port = accept.unwrap().rsplit(':').next().unwrap().trim().parse().unwrap();
    let error = dial_server("127.0.0.1", port, &ann, LONG).unwrap_err();
    let _ = server.kill();
    server.wait().unwrap();
    assert!(matches!(error.failure, ServerFailure::OldTls), "{error}");
}
