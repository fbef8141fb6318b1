//! The listener and those who connect: agents with tickets, and strangers.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use gridrpc_transport::dial::{ClientConnection, DialError, Failure, dial};
use gridrpc_transport::listener::{Admission, Admitted, Listener};
use gridrpc_transport::{Keys, Ticket, TicketKeys, Transport};

const SOON: Duration = Duration::from_secs(1);
const LONG: Duration = Duration::from_secs(4);
const NEAR: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

struct TestListener {
    listener: Listener,
    come: Receiver<Admitted>,
    keys: Option<TicketKeys>,
}

fn house_at(addresses: &[IpAddr], keys: Option<Keys>) -> TestListener {
    house_of(addresses, keys, 0)
}

fn house_of(addresses: &[IpAddr], keys: Option<Keys>, early: usize) -> TestListener {
    let (sender, come) = channel();
    let ticket = keys.as_ref().map(Keys::ticket);
    let admit = move |admitted| sender.send(admitted).unwrap();
    let admission = Admission::Secret { keys: keys.map(Arc::new), early };
    let listener = Listener::open(addresses, None, admission, admit).unwrap();
    TestListener { listener, come, keys: ticket }
}

fn plain() -> Admission {
    Admission::Secret { keys: None, early: 0 }
}

fn house() -> TestListener {
    house_at(&[], Some(Keys::generate().unwrap()))
}

impl TestListener {
    fn ticket(&self, secret: u8) -> Ticket {
        let addresses = vec![format!("127.0.0.1:{}", self.listener.port())];
        Ticket { addresses, secret: [secret; 32], keys: self.keys.clone() }
    }

    fn nobody_comes(&self) {
        let nobody = self.come.recv_timeout(Duration::from_millis(150));
        assert_eq!(nobody.unwrap_err(), RecvTimeoutError::Timeout);
    }

    fn stranger(&self) -> TcpStream {
        let stranger = TcpStream::connect(("127.0.0.1", self.listener.port())).unwrap();
        stranger.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        stranger
    }

    /// Who shows the secret, and how both ends are connected then.
    fn let_in(&self, agent: u32, secret: u8) -> (ClientConnection, Admitted) {
        self.listener.invite(agent, &[secret; 32]);
        let dialled = dial(&self.ticket(secret), LONG, true).unwrap();
        let admitted = self.come.recv_timeout(SOON).unwrap();
        assert_eq!(admitted.agent, agent);
        (dialled, admitted)
    }
}

fn receive(transport: &dyn Transport) -> Vec<u8> {
    let until = Instant::now() + SOON;
    let mut place = [0; 100];
    loop {
        match transport.receive_into(&mut place) {
            Ok(count) => return place[..count].to_vec(),
            Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock),
        }
        assert!(Instant::now() < until);
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn an_agent_with_a_ticket_comes_in_once() {
    for keys in [None, Some(Keys::generate().unwrap())] {
        let encrypted = keys.is_some();
        let house = house_at(&[], keys);
        let (dialled, admitted) = house.let_in(7, 1);
        assert_eq!(admitted.from.ip(), NEAR);
        assert_eq!(dialled.address.port(), house.listener.port());
        assert_eq!(dialled.name, format!("127.0.0.1:{}", house.listener.port()));
        dialled.transport.send(b"hello", &[]).unwrap();
        assert_eq!(receive(&*admitted.transport), b"hello");
        admitted.transport.send(b"welcome", &[]).unwrap();
        assert_eq!(receive(&*dialled.transport), b"welcome");
        // The same secret again is good for nothing: the connection ends.
        let again = dial(&house.ticket(1), LONG, true).unwrap();
        assert_eq!(again.transport.receive_into(&mut [0; 10]).unwrap(), 0, "{encrypted}");
        house.nobody_comes();
    }
}

#[test]
fn what_is_sent_with_the_secret_is_not_lost() {
    let house = house_at(&[NEAR], None);
    house.listener.invite(3, &[9; 32]);
    let mut agent = house.stranger();
    let mut bytes = vec![9; 32];
    bytes.extend(b"and more");
    agent.write_all(&bytes[..5]).unwrap();
    thread::sleep(Duration::from_millis(50));
    agent.write_all(&bytes[5..]).unwrap();
    let admitted = house.come.recv_timeout(SOON).unwrap();
    assert_eq!(receive(&*admitted.transport), b"and more");
}

#[test]
fn who_comes_before_the_invitation_waits_for_it_if_there_is_room() {
    let house = house_of(&[], Some(Keys::generate().unwrap()), 1);
    let _first = dial(&house.ticket(1), LONG, true).unwrap();
    house.nobody_comes();
    house.listener.invite(4, &[1; 32]);
    assert_eq!(house.come.recv_timeout(SOON).unwrap().agent, 4);
    // The secret was good for one.
    house.listener.invite(5, &[1; 32]);
    house.nobody_comes();
    // Of two, the one that came last waits.
    let _second = dial(&house.ticket(2), LONG, true);
    house.nobody_comes();
    let _third = dial(&house.ticket(3), LONG, true);
    house.nobody_comes();
    house.listener.invite(6, &[2; 32]);
    house.nobody_comes();
    house.listener.invite(7, &[3; 32]);
    assert_eq!(house.come.recv_timeout(SOON).unwrap().agent, 7);
}

#[test]
fn secrets_that_are_old_or_revoked_admit_nobody() {
    let house = house();
    house.listener.invite(1, &[1; 32]);
    house.listener.invite(1, &[2; 32]);
    house.listener.invite(2, &[3; 32]);
    house.listener.revoke(2);
    for secret in [1, 3, 4] {
        let refused = dial(&house.ticket(secret), LONG, true).unwrap();
        assert_eq!(refused.transport.receive_into(&mut [0; 10]).unwrap(), 0);
    }
    house.nobody_comes();
    dial(&house.ticket(2), LONG, true).unwrap();
    assert_eq!(house.come.recv_timeout(SOON).unwrap().agent, 1);
}

#[test]
fn the_right_secret_without_the_right_certificate_admits_nobody() {
    let house = house();
    house.listener.invite(1, &[1; 32]);
    let (right, wrong) = (house.keys.clone().unwrap(), Keys::generate().unwrap().ticket());
    // Plain, over no TLS at all.
    let mut stranger = house.stranger();
    stranger.write_all(&[1; 32]).unwrap();
    house.nobody_comes();
    // With another agent's certificate.
    let keys = TicketKeys { client: right.client.clone(), ..wrong.clone() };
    let ticket = Ticket { keys: Some(keys), ..house.ticket(1) };
    if let Ok(dialled) = dial(&ticket, LONG, true) {
        assert!(dialled.transport.receive_into(&mut [0; 10]).is_err());
    }
    house.nobody_comes();
    // An agent of another client gets an error that says so.
    let ticket = Ticket { keys: Some(wrong), ..house.ticket(1) };
    let Err(DialError::Unreachable(attempts)) = dial(&ticket, LONG, true) else { panic!() };
    assert!(matches!(attempts.0[0].failure, Failure::Stranger(_)));
    house.nobody_comes();
    // The secret has not been used up.
    dial(&house.ticket(1), LONG, true).unwrap();
    assert_eq!(house.come.recv_timeout(SOON).unwrap().agent, 1);
}

#[test]
fn strangers_get_nothing_and_disturb_nobody() {
    let house = house();
    let mut silent = house.stranger();
    let mut garbage = house.stranger();
    garbage.write_all(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n").unwrap();
    // A record of a handshake that announces more than comes.
    let mut half = house.stranger();
    half.write_all(&[22, 3, 1, 1, 0, 1, 0, 0, 252, 3, 3]).unwrap();
    let (_dialled, _admitted) = house.let_in(5, 5);
    let began = Instant::now();
    let mut got = Vec::new();
    let _ = garbage.read_to_end(&mut got);
    // An alert (21), and nothing else.
    assert!(got.is_empty() || (got[0] == 21 && got.len() == 7), "{got:?}");
    for stranger in [&mut silent, &mut half] {
        let mut got = Vec::new();
        let _ = stranger.read_to_end(&mut got);
        assert!(got.is_empty());
    }
    let took = began.elapsed();
    assert!(took > Duration::from_secs(3) && took < Duration::from_secs(7), "{took:?}");
}

#[test]
fn an_agent_comes_in_amid_a_thousand_strangers() {
    let house = house();
    let port = house.listener.port();
    let crowd = thread::spawn(move || -> Vec<TcpStream> {
        let connect = |_| TcpStream::connect(("127.0.0.1", port)).ok();
        (0..1000).filter_map(connect).collect()
    });
    for agent in 0..20 {
        house.listener.invite(agent, &[agent as u8; 32]);
        let began = Instant::now();
        let _dialled = dial(&house.ticket(agent as u8), LONG, true).unwrap();
        assert_eq!(house.come.recv_timeout(SOON).unwrap().agent, agent);
        assert!(began.elapsed() < SOON);
    }
    crowd.join().unwrap();
}

#[test]
fn a_closed_door_is_closed_at_once() {
    let mut house = house();
    let mut pending = house.stranger();
    let began = Instant::now();
    house.listener.close();
    assert!(began.elapsed() < SOON);
    assert_eq!(pending.read(&mut [0]).unwrap_or(0), 0);
    assert!(TcpStream::connect(("127.0.0.1", house.listener.port())).is_err());
}

#[test]
fn ports_are_those_that_may_be_taken() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let open = |last| Listener::open(&[NEAR], Some((port, last)), plain(), |_| ());
    let error = open(port).unwrap_err().to_string();
    assert_eq!(error, format!("port {port} is taken"));
    if let Ok(listener) = open(port.saturating_add(20)) {
        assert!((port + 1..=port.saturating_add(20)).contains(&listener.port()));
    }
    let both =
        Listener::open(&[NEAR, "127.0.0.2".parse().unwrap()], None, plain(), |_| ()).unwrap();
    for host in ["127.0.0.1", "127.0.0.2"] {
        TcpStream::connect((host, both.port())).unwrap();
    }
    assert!(Listener::open(&["192.0.2.1".parse().unwrap()], None, plain(), |_| ()).is_err());
}

#[test]
fn the_first_address_that_answers_as_the_client_is_taken() {
    let house = house();
    house.listener.invite(1, &[1; 32]);
    let mute = TcpListener::bind("127.0.0.1:0").unwrap();
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut ticket = house.ticket(1);
    let right = format!("localhost:{}", house.listener.port());
    ticket.addresses =
        vec![closed.to_string(), mute.local_addr().unwrap().to_string(), right.clone()];
    let began = Instant::now();
    let dialled = dial(&ticket, LONG, false).unwrap();
    assert!(began.elapsed() < Duration::from_millis(900));
    assert_eq!(dialled.name, right);
    let error = dialled.transport.receive_into(&mut [0]).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
    assert_eq!(house.come.recv_timeout(SOON).unwrap().agent, 1);
}

#[test]
fn a_host_that_reaches_nobody_reports_all_that_was_tried() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mute = listener.local_addr().unwrap();
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let keys = Some(Keys::generate().unwrap().ticket());
    let addresses = vec![closed.to_string(), mute.to_string(), "no port".to_owned()];
    let ticket = Ticket { addresses, secret: [0; 32], keys };
    let began = Instant::now();
    let error = dial(&ticket, Duration::from_millis(400), true).unwrap_err().to_string();
    assert!(began.elapsed() < SOON);
    for part in [
        format!("{closed}: Connection refused"),
        format!("{mute}: the connection was accepted, but no answer came"),
        "no port: no address is known by this name".to_owned(),
        "firewall".to_owned(),
        "`addresses`".to_owned(),
        "`ports`".to_owned(),
    ] {
        assert!(error.contains(&part), "{part} is not in: {error}");
    }
}
