//! Tests of encrypted connections, over loopback.

use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use super::*;
use crate::TicketKeys;

fn sockets() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let one = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (other, _) = listener.accept().unwrap();
    (one, other)
}

/// Both ends before the handshake: the agent's and the client's.
fn ends(keys: &Keys, ticket: &TicketKeys) -> (Tls, Tls) {
    let (agent, client) = sockets();
    let agent = Tls::connect(agent.into(), &AgentKeys::new(ticket).unwrap()).unwrap();
    (agent, Tls::accept(client.into(), keys).unwrap())
}

fn shake_hands(agent: &Tls, client: &Tls) -> (io::Result<()>, io::Result<()>) {
    let (mut first, mut second) = (Ok(false), Ok(false));
    for _ in 0..2_000 {
        if matches!(first, Ok(false)) {
            first = agent.advance();
        }
        if matches!(second, Ok(false)) {
            second = client.advance();
        }
        if !matches!(first, Ok(false)) && !matches!(second, Ok(false)) {
            break;
        }
        thread::sleep(Duration::from_millis(1));
    }
    (first.map(|done| assert!(done)), second.map(|done| assert!(done)))
}

fn pair() -> (Tls, Tls) {
    let keys = Keys::generate().unwrap();
    let (agent, client) = ends(&keys, &keys.ticket());
    let (first, second) = shake_hands(&agent, &client);
    first.unwrap();
    second.unwrap();
    (agent, client)
}

fn send_all(end: &Tls, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        match end.send(bytes, &[]) {
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => end.wait_for_room().unwrap(),
            Err(error) => panic!("{error}"),
        }
    }
    while !end.flush().unwrap() {
        end.wait_for_room().unwrap();
    }
}

fn wait(end: &Tls) {
    let mut waited = [PollFd::new(end.socket(), PollFlags::POLLIN)];
    poll(&mut waited, PollTimeout::from(10_000_u16)).unwrap();
}

#[test]
fn bytes_go_across_encrypted_with_the_fastest_cipher() {
    let (agent, client) = pair();
    send_all(&agent, b"hello");
    let mut place = [0; 3];
    assert_eq!(client.receive_into(&mut place).unwrap(), 3);
    assert!(client.has_more());
    let mut rest = Vec::with_capacity(100);
    assert_eq!(client.receive_behind(&mut rest, 50).unwrap(), 2);
    assert!(!client.has_more());
    assert_eq!((&place, &rest[..]), (b"hel", &b"lo"[..]));
    let suite = client.lock().tls.negotiated_cipher_suite().unwrap().suite();
    assert_eq!(suite, rustls::CipherSuite::TLS13_AES_128_GCM_SHA256);
    assert!(agent.send(b"x", &[0]).is_err());
}

#[test]
fn what_comes_before_more_goes_together_with_it() {
    let (agent, client) = pair();
    agent.set_blocking(false).unwrap();
    client.set_blocking(false).unwrap();
    let mut place = vec![0; 2 * AHEAD];
    assert_eq!(agent.send_before(b"head", &[]).unwrap(), 4);
    thread::sleep(Duration::from_millis(20));
    let nothing = client.receive_into(&mut place).unwrap_err();
    assert_eq!(nothing.kind(), io::ErrorKind::WouldBlock);
    assert_eq!(agent.send(&vec![7; 2 * AHEAD], &[]).unwrap(), AHEAD, "whole records");
    // Too much to wait, and nothing that follows.
    assert_eq!(agent.send_before(&[8; BEFORE + 1], &[]).unwrap(), BEFORE + 1);
    assert_eq!(agent.send_before(b"tail", &[]).unwrap(), 4);
    assert!(agent.flush().unwrap());
    let mut come = Vec::new();
    while come.len() < 4 + AHEAD + BEFORE + 1 + 4 {
        wait(&client);
        let count = client.receive_into(&mut place).unwrap();
        come.extend_from_slice(&place[..count]);
    }
    let expected = [b"head", &*vec![7; AHEAD], &*vec![8; BEFORE + 1], b"tail"].concat();
    assert!(come == expected, "{} bytes came", come.len());
    assert!(agent.send_before(b"x", &[0]).is_err());
}

#[test]
fn a_socket_that_does_not_block_says_so() {
    let (agent, client) = pair();
    agent.set_blocking(false).unwrap();
    client.set_blocking(false).unwrap();
    let would_block = |result: io::Result<usize>| {
        assert_eq!(result.unwrap_err().kind(), io::ErrorKind::WouldBlock);
    };
    would_block(client.receive_into(&mut [0; 10]));
    let chunk = vec![7; 1 << 20];
    let mut sent = 0;
    let refused = loop {
        match agent.send(&chunk, &[]) {
            Ok(count) => sent += count,
            refused => break refused,
        }
    };
    would_block(refused);
    assert!(!agent.flush().unwrap());
    let mut come = 0;
    let mut place = vec![0; 100_000];
    while come < sent {
        match client.receive_into(&mut place) {
            Ok(count) => {
                assert!(place[..count].iter().all(|byte| *byte == 7));
                come += count;
            }
            Err(_) => {
                agent.flush().unwrap();
                thread::sleep(Duration::from_millis(1));
            }
        }
    }
    assert!(agent.flush().unwrap());
    would_block(client.receive_into(&mut place));
}

/// How much goes each way at the same time, bytes.
const MUCH: usize = 200 << 20;

fn byte(at: usize) -> u8 {
    (at ^ (at >> 8) ^ (at >> 16)) as u8
}

fn both_ways(blocking: bool) {
    let (agent, client) = pair();
    let ends = [Arc::new(agent), Arc::new(client)];
    let all: Arc<Vec<u8>> = Arc::new((0..1 << 24).map(byte).collect());
    let mut threads = Vec::new();
    for end in &ends {
        end.set_blocking(blocking).unwrap();
        let (sender, bytes) = (Arc::clone(end), Arc::clone(&all));
        threads.push(thread::spawn(move || {
            for start in (0..MUCH).step_by(bytes.len()) {
                send_all(&sender, &bytes[..bytes.len().min(MUCH - start)]);
            }
        }));
        let (receiver, bytes) = (Arc::clone(end), Arc::clone(&all));
        threads.push(thread::spawn(move || {
            let mut place = vec![0; 1 << 20];
            let mut come = 0;
            while come < MUCH {
                match receiver.receive_into(&mut place) {
                    Ok(0) => panic!("the end after {come} bytes"),
                    Ok(count) => {
                        let from = come % bytes.len();
                        let first = count.min(bytes.len() - from);
                        assert_eq!(place[..first], bytes[from..from + first]);
                        assert_eq!(place[first..count], bytes[..count - first]);
                        come += count;
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => wait(&receiver),
                    Err(error) => panic!("{error}"),
                }
            }
        }));
    }
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

#[test]
fn much_goes_both_ways_at_once_where_sockets_block() {
    both_ways(true);
}

#[test]
fn much_goes_both_ways_at_once_where_sockets_do_not_block() {
    both_ways(false);
}

#[test]
fn a_blocking_receiver_waits_as_long_as_its_socket_is_set_to() {
    let (agent, client) = pair();
    gridrpc_sys::wait_at_most(client.socket(), Duration::from_millis(20)).unwrap();
    let error = client.receive_into(&mut [0]).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
    send_all(&agent, b"!");
    assert_eq!(client.receive_into(&mut [0]).unwrap(), 1);
}

#[test]
fn only_the_other_end_can_end_a_connection() {
    let (agent, client) = pair();
    send_all(&agent, b"bye");
    drop(agent);
    let mut place = [0; 10];
    assert_eq!(client.receive_into(&mut place).unwrap(), 3);
    assert_eq!(client.receive_into(&mut place).unwrap(), 0);
    assert!(client.has_more());
    assert_eq!(client.receive_into(&mut place).unwrap(), 0);

    let (agent, client) = pair();
    let cut = TcpStream::from(agent.socket.as_fd().try_clone_to_owned().unwrap());
    cut.shutdown(Shutdown::Both).unwrap();
    let error = client.receive_into(&mut place).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
}

#[test]
fn each_side_takes_only_the_certificate_it_knows() {
    let (keys, others) = (Keys::generate().unwrap(), Keys::generate().unwrap());
    let (right, wrong) = (keys.ticket(), others.ticket());
    // Another client than the ticket names.
    let ticket = TicketKeys { client: wrong.client.clone(), ..right.clone() };
    let (agent, client) = ends(&keys, &ticket);
    let (first, second) = shake_hands(&agent, &client);
    assert!(first.is_err() && second.is_err());
    // Another agent; and one that shows the right certificate without the key to it.
    let stolen = TicketKeys { certificate: right.certificate.clone(), ..wrong.clone() };
    assert!(AgentKeys::new(&stolen).is_err());
    let ticket = TicketKeys { client: right.client, ..wrong };
    let (agent, client) = ends(&keys, &ticket);
    let (first, second) = shake_hands(&agent, &client);
    assert_eq!(second.unwrap_err().kind(), io::ErrorKind::InvalidData);
    // To the agent all seems well at first; the error comes later.
    first.unwrap();
    let error = agent.receive_into(&mut [0]).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidData);
}

#[test]
fn what_somebody_else_has_put_in_between_is_refused() {
    let (agent, client) = pair();
    let mut record = vec![23, 3, 3, 0, 40];
    record.resize(45, 7);
    assert_eq!(gridrpc_sys::send(agent.socket(), &record, &[]).unwrap(), 45);
    client.set_blocking(false).unwrap();
    wait(&client);
    let error = client.receive_into(&mut [0; 10]).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidData);
}
