//! Connections that a server does not admit.

use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};
use std::time::Duration;

use gridrpc_transport::listener::HandshakeError;

use crate::authority::{Authority, Server, USER};

#[test]
fn plain_clients_are_refused() {
    let server = Server::new(&Authority::new("authority"));
    let mut plain = server.stranger();
    plain.write_all(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n").unwrap();
    assert!(matches!(server.refusal(), HandshakeError::NotTls));
    let mut early = server.stranger();
    early.write_all(&[22, 3, 1]).unwrap();
    drop(early);
    assert!(matches!(server.refusal(), HandshakeError::Closed));
    assert_eq!(server.listener.refused(), 2);
}

#[test]
fn clients_of_old_versions_and_without_a_certificate_are_refused() {
    let authority = Authority::new("authority");
    let server = Server::new(&authority);
    let connect = |option: &str| {
        let address = format!("127.0.0.1:{}", server.listener.port());
        let mut command = Command::new("openssl");
        command.args(["s_client", "-connect", &address, option]).stdin(Stdio::null());
        let output = command.output().unwrap();
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let old = connect("-tls1_2");
    assert!(matches!(server.refusal(), HandshakeError::OldTls));
    assert!(old.contains("protocol version"), "{old}");
    connect("-tls1_3");
    let refusal = server.refusal();
    assert!(matches!(refusal, HandshakeError::NoCertificate), "{refusal}");
    // It still serves users.
    server.dial(&authority.user(&USER)).unwrap();
}

#[test]
fn slow_senders_are_dropped_when_their_time_is_over() {
    let server = Server::new(&Authority::new("authority"));
    let mut slow = server.stranger();
    slow.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    // A handshake record that announces more than comes, byte by byte.
    let head = [22, 3, 1, 1, 0, 1, 0, 0, 252, 3, 3];
    let mut sent = 0;
    let refusal = loop {
        let byte = head.get(sent).copied().unwrap_or(7);
        let _ = slow.write_all(&[byte]);
        sent += 1;
        let _ = slow.read(&mut [0]);
        if let Ok((_, refusal)) = server.refused.try_recv() {
            break refusal;
        }
        assert!(sent < 80);
    };
    assert!(matches!(refusal, HandshakeError::Timeout), "{refusal}");
    assert!(sent > 30, "{sent}");
}
