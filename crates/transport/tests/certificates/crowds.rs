//! Thousands of connections that do not complete the handshake, while users continue unharmed.

use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::fd::AsRawFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use gridrpc_transport::listener::HandshakeError;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrIn, bind, connect, socket};

use crate::authority::{Authority, Server, USER};

/// Number of connections that stall.
const STALLED: usize = 10_000;
/// Descriptors that the rest of the test needs.
const OTHERS: usize = 600;

/// A connection from this loopback address.
fn connect_from(from: Ipv4Addr, port: u16) -> nix::Result<TcpStream> {
    let socket = socket(AddressFamily::Inet, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)?;
    bind(socket.as_raw_fd(), &SockaddrIn::from(std::net::SocketAddrV4::new(from, 0)))?;
    let to = SocketAddr::from(([127, 0, 0, 1], port));
    let SocketAddr::V4(to) = to else { return Err(nix::Error::EINVAL) };
    connect(socket.as_raw_fd(), &SockaddrIn::from(to))?;
    Ok(TcpStream::from(socket))
}

/// None of the connections ends before its test does. Returns how many there may be.
fn raise_descriptor_limit() -> usize {
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    setrlimit(Resource::RLIMIT_NOFILE, most, most).unwrap();
    let room = usize::try_from(most).unwrap().saturating_sub(OTHERS);
    if room < STALLED {
        eprintln!(
            "the hard limit of open files is {most}: {room} connections instead of {STALLED}"
        );
    }
    room.min(STALLED)
}

/// The beginning of a handshake: a record of TLS with a ClientHello that is not complete.
const HELLO: [u8; 11] = [22, 3, 1, 1, 0, 1, 0, 0, 252, 3, 3];

/// How an attacker continues.
#[derive(Clone, Copy)]
enum StalledClient {
    /// Sends nothing.
    Silent,
    /// Sends the beginning of a handshake, and no more.
    Partial,
    /// Sends a byte to each connection, again and again.
    Slow,
}

impl StalledClient {
    fn begin(self, stream: &mut TcpStream) {
        let bytes = match self {
            StalledClient::Silent => &[][..],
            StalledClient::Partial => &HELLO,
            StalledClient::Slow => &HELLO[..1],
        };
        let _ = stream.write_all(bytes);
    }

    /// Sends the next byte on each connection. `round`: the number of bytes that were sent before.
    fn resume(self, open: &mut [TcpStream], round: usize) {
        if matches!(self, StalledClient::Slow) {
            let byte = HELLO.get(round).copied().unwrap_or(0);
            // Those that the server has closed are of no interest.
            open.iter_mut().for_each(|stream| drop(stream.write_all(&[byte])));
        }
    }
}

#[test]
fn users_connect_while_thousands_of_connections_stall() {
    let authority = Authority::new("authority");
    let server = Server::new(&authority);
    let port = server.listener.port();
    let ann = authority.user(&USER);
    let most = raise_descriptor_limit();
    let (end, count) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let attackers: Vec<_> = [StalledClient::Silent, StalledClient::Partial, StalledClient::Slow]
        .into_iter()
        .zip([2, 3, 4])
        .map(|(attack, host)| {
            let (end, count) = (Arc::clone(&end), Arc::clone(&count));
            thread::spawn(move || {
                let (mut open, mut round) = (Vec::new(), 1);
                while !end.load(Ordering::Relaxed) {
                    if count.load(Ordering::Relaxed) >= most {
                        thread::sleep(Duration::from_millis(10));
                    } else if let Ok(mut stream) =
                        connect_from(Ipv4Addr::new(127, 0, 0, host), port)
                    {
                        attack.begin(&mut stream);
                        open.push(stream);
                        count.fetch_add(1, Ordering::Relaxed);
                    }
                    if open.len() % 100 == 0 {
                        attack.resume(&mut open, round);
                        round += 1;
                    }
                }
            })
        })
        .collect();
    let began = Instant::now();
    let mut longest = Duration::ZERO;
    while count.load(Ordering::Relaxed) < most {
        assert!(began.elapsed() < Duration::from_secs(120));
        let began = Instant::now();
        let _connection = server.dial(&ann).unwrap();
        longest = longest.max(began.elapsed());
        assert_eq!(server.admitted.recv().unwrap().identity.unwrap().user, "ann");
    }
    end.store(true, Ordering::Relaxed);
    attackers.into_iter().for_each(|one| one.join().unwrap());
    assert!(longest < Duration::from_secs(4), "{longest:?}");
    let mut crowded = 0;
    while let Ok((from, reason)) = server.refused.try_recv() {
        assert!(from.ip() != Ipv4Addr::new(127, 0, 0, 1), "{reason}");
        crowded += usize::from(matches!(reason, HandshakeError::Crowded));
    }
    assert!(crowded > 0);
}

#[test]
fn pending_connections_of_a_user_survive_a_crowd_of_another_address() {
    raise_descriptor_limit();
    let server = Server::new(&Authority::new("authority"));
    let port = server.listener.port();
    let mut slow = server.stranger();
    slow.write_all(&[22, 3, 1]).unwrap();
    let from = Ipv4Addr::new(127, 0, 0, 9);
    let _crowd: Vec<_> = (0..2_500).map(|_| connect_from(from, port).unwrap()).collect();
    let mut refused = Vec::new();
    while let Ok(one) = server.refused.recv_timeout(Duration::from_millis(300)) {
        refused.push(one);
    }
    // On a slow machine its time may be over, but it never has to make room.
    let made_room = |(address, reason): &(SocketAddr, HandshakeError)| {
        address.ip() != from && matches!(reason, HandshakeError::Crowded)
    };
    assert!(!refused.iter().any(made_room));
    assert!(refused.iter().any(|(_, reason)| matches!(reason, HandshakeError::Crowded)));
    assert!(refused.len() >= 2_500 - 256, "{}", refused.len());
}
