//! Connections of workers in nodes, while they are being made. Nobody waits for them: the event queue
//! tells that something has become of one, and whoever leads goes on with it.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Instant;

use gridrpc_core::WorkerId;
use nix::sys::epoll::{Epoll, EpollEvent, EpollFlags};

use crate::client::launch::Pair;
use crate::client::nodes::{Attempt, Node, PATIENCE};
use crate::client::reactor::Token;

/// A worker that was to have a connection, and what has come of it: the connection, or why there is
/// none.
pub(super) type Connected = (WorkerId, Result<Pair, String>);

/// The nodes, and all connections that are being made to them.
#[derive(Debug)]
pub(super) struct Connecting {
    epoll: Arc<Epoll>,
    /// Worker i lives in node i modulo their number.
    ways: Vec<Way>,
    /// How many workers have been asked for and not been told of.
    wanted: usize,
    settled: Vec<Connected>,
}

/// One node.
#[derive(Debug)]
struct Way {
    index: u32,
    node: Node,
    line: Line,
}

/// Those who want a connection to it.
#[derive(Debug, Default)]
struct Line {
    under_way: Vec<UnderWay>,
    /// Workers whose connections have not been begun.
    waiting: VecDeque<WorkerId>,
}

#[derive(Debug)]
struct UnderWay {
    worker: WorkerId,
    attempt: Attempt,
    until: Instant,
}

/// Connections that are under way to one node: far fewer than its listener keeps for us.
const AT_ONCE: usize = 16;

impl Connecting {
    pub(super) fn new(epoll: Arc<Epoll>, nodes: Vec<Node>) -> io::Result<Connecting> {
        let mut ways = Vec::with_capacity(nodes.len());
        for (index, node) in (0..).zip(nodes) {
            watch(&epoll, node.listener(), index, EpollFlags::EPOLLIN)?;
            ways.push(Way { index, node, line: Line::default() });
        }
        Ok(Connecting { epoll, ways, wanted: 0, settled: Vec::new() })
    }

    /// Whether workers live in nodes at all.
    pub(super) fn has_nodes(&self) -> bool {
        !self.ways.is_empty()
    }

    /// Whether no worker waits for a connection.
    pub(super) fn is_idle(&self) -> bool {
        self.wanted == 0
    }

    /// Has connections made for these workers, from this time on.
    pub(super) fn ask(&mut self, now: Instant, workers: &[WorkerId]) {
        self.wanted += workers.len();
        let nodes = self.ways.len();
        for worker in workers {
            self.ways[worker.0 as usize % nodes].line.waiting.push_back(*worker);
        }
        self.begin(now);
    }

    /// Begins as many as may be under way.
    fn begin(&mut self, now: Instant) {
        let until = now + PATIENCE;
        for way in &mut self.ways {
            while way.line.under_way.len() < AT_ONCE
                && let Some(worker) = way.line.waiting.pop_front()
            {
                let begun = way.node.begin().and_then(|attempt| {
                    // Only failures matter, which are always told.
                    watch(&self.epoll, attempt.as_fd(), way.index, EpollFlags::empty())
                        .map_err(|error| way.node.unreachable(error))?;
                    Ok(attempt)
                });
                match begun {
                    Ok(attempt) => way.line.under_way.push(UnderWay { worker, attempt, until }),
                    Err(error) => self.settled.push((worker, Err(error.to_string()))),
                }
            }
        }
    }

    /// Something has come to a node, or a connection to it has failed.
    pub(super) fn hear(&mut self, node: u32) {
        let Connecting { epoll, ways, settled, .. } = self;
        let Some(way) = ways.get_mut(node as usize) else { return };
        loop {
            match way.node.accept() {
                Ok(Some((theirs, from))) => {
                    let place =
                        way.line.under_way.iter().position(|one| one.attempt.from() == from);
                    let Some(place) = place else { continue };
                    let UnderWay { worker, attempt, .. } = way.line.under_way.swap_remove(place);
                    forget(epoll, &attempt);
                    let joined = attempt.join(theirs);
                    settled.push((worker, joined.map_err(|error| error.to_string())));
                }
                Ok(None) => break,
                Err(error) => {
                    let why = way.node.unreachable(error).to_string();
                    way.line.fail(epoll, settled, |_| Some(why.clone()));
                    return;
                }
            }
        }
        way.line.fail(epoll, settled, |one| {
            let error = one.attempt.failure()?;
            Some(way.node.unreachable(error).to_string())
        });
    }

    /// Goes on at this time, and returns what has been settled since the last one.
    pub(super) fn go_on(&mut self, now: Instant) -> Vec<Connected> {
        let Connecting { epoll, ways, settled, .. } = self;
        for way in ways {
            if way.line.under_way.iter().any(|one| one.until <= now) {
                let why = way.node.unreachable(io::ErrorKind::TimedOut.into()).to_string();
                way.line.fail(epoll, settled, |one| (one.until <= now).then(|| why.clone()));
            }
        }
        self.begin(now);
        self.wanted -= self.settled.len();
        std::mem::take(&mut self.settled)
    }

    /// When the next connection is overdue.
    pub(super) fn due(&self) -> Option<Instant> {
        self.ways.iter().flat_map(|way| &way.line.under_way).map(|one| one.until).min()
    }

    /// No worker is wanted any more.
    pub(super) fn clear(&mut self) {
        for way in &mut self.ways {
            way.line.waiting.clear();
            way.line.under_way.drain(..).for_each(|one| forget(&self.epoll, &one.attempt));
        }
        self.settled.clear();
        self.wanted = 0;
    }
}

impl Line {
    /// Settles those under way that have failed, as `why` tells, and then those behind them as well:
    /// nothing speaks for these.
    fn fail(
        &mut self,
        epoll: &Epoll,
        settled: &mut Vec<Connected>,
        why: impl Fn(&UnderWay) -> Option<String>,
    ) {
        let mut last = None;
        self.under_way.retain(|one| {
            let Some(why) = why(one) else { return true };
            forget(epoll, &one.attempt);
            settled.push((one.worker, Err(why.clone())));
            last = Some(why);
            false
        });
        if let Some(why) = last {
            settled.extend(self.waiting.drain(..).map(|worker| (worker, Err(why.clone()))));
        }
    }
}

/// Has the event queue tell once of each change: what it is, the node's sockets say.
fn watch(epoll: &Epoll, socket: BorrowedFd<'_>, node: u32, flags: EpollFlags) -> io::Result<()> {
    let token = Token::Node { index: node }.encode();
    Ok(epoll.add(socket, EpollEvent::new(flags | EpollFlags::EPOLLET, token))?)
}

/// A child that this process has forked meanwhile may hold the socket open, and it would be reported
/// for ever.
fn forget(epoll: &Epoll, attempt: &Attempt) {
    let _ = epoll.delete(attempt.as_fd());
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{SocketAddr, TcpListener, TcpStream};
    use std::os::fd::OwnedFd;
    use std::time::Duration;

    use nix::sys::epoll::{EpollCreateFlags, EpollTimeout};

    use super::*;

    const ALL: usize = 3 * AT_ONCE;

    fn listener() -> (TcpListener, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("its address");
        (listener, address)
    }

    /// A node that is here.
    fn near() -> Node {
        let (listener, address) = listener();
        Node::at(listener, address)
    }

    /// A node that connections are lost on the way to: they come to another listener.
    fn lost() -> (Node, TcpListener) {
        let (elsewhere, address) = listener();
        (Node::at(listener().0, address), elsewhere)
    }

    fn connecting(nodes: Vec<Node>) -> Connecting {
        let epoll = Arc::new(Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).expect("an event queue"));
        Connecting::new(epoll, nodes).expect("watched nodes")
    }

    fn workers(numbers: impl IntoIterator<Item = u32>) -> Vec<WorkerId> {
        numbers.into_iter().map(WorkerId).collect()
    }

    /// Does what the reactor does until so many workers are settled, in the order of their numbers.
    fn settle(connecting: &mut Connecting, count: usize, now: Instant) -> Vec<Connected> {
        let mut settled = connecting.go_on(now);
        while settled.len() < count {
            let mut events = [EpollEvent::empty(); 4];
            let timeout = EpollTimeout::from(20_000_u16);
            let come = connecting.epoll.wait(&mut events, timeout).expect("events");
            assert!(come > 0, "nothing comes of {} workers", count - settled.len());
            for event in &events[..come] {
                let Some(Token::Node { index }) = Token::decode(event.data()) else {
                    panic!("an event of something else");
                };
                connecting.hear(index);
            }
            settled.extend(connecting.go_on(now));
        }
        settled.sort_by_key(|(worker, _)| worker.0);
        settled
    }

    fn stream(end: impl AsFd) -> TcpStream {
        let end: OwnedFd = end.as_fd().try_clone_to_owned().expect("a descriptor");
        let stream = TcpStream::from(end);
        stream.set_nonblocking(false).expect("waiting");
        stream
    }

    #[test]
    fn each_worker_gets_a_connection_of_its_own() {
        let now = Instant::now();
        let mut connecting = connecting(vec![near(), near()]);
        connecting.ask(now, &workers(0..ALL as u32));
        assert!(!connecting.is_idle());
        let settled = settle(&mut connecting, ALL, now);
        assert!(connecting.is_idle() && connecting.due().is_none());
        for (number, (worker, connected)) in (0..).zip(settled) {
            assert_eq!(worker, WorkerId(number));
            let Pair { ours, theirs } = connected.expect("a connection");
            stream(ours.socket()).write_all(&number.to_le_bytes()).expect("sent");
            let mut got = [0; 4];
            stream(theirs.as_fd()).read_exact(&mut got).expect("received");
            assert_eq!(u32::from_le_bytes(got), number);
        }
    }

    #[test]
    fn strangers_at_the_port_are_sent_away() {
        let (listener, address) = listener();
        let mut stranger = TcpStream::connect(address).expect("a connection");
        let now = Instant::now();
        let mut connecting = connecting(vec![Node::at(listener, address)]);
        connecting.ask(now, &workers([7]));
        let settled = settle(&mut connecting, 1, now);
        assert!(matches!(&settled[..], [(WorkerId(7), Ok(_))]));
        assert_eq!(stranger.read(&mut [0]).expect("its end"), 0);
    }

    #[test]
    fn one_node_does_not_hold_up_others() {
        let (lost, _elsewhere) = lost();
        let now = Instant::now();
        let mut connecting = connecting(vec![near(), lost]);
        connecting.ask(now, &workers(0..2 * ALL as u32));
        let settled = settle(&mut connecting, ALL, now);
        assert!(settled.iter().all(|(worker, connected)| worker.0 % 2 == 0 && connected.is_ok()));
        // The others are still being waited for, until they are overdue: all, also those that have
        // not had their turn.
        let due = connecting.due().expect("something is under way");
        assert!(connecting.go_on(due - Duration::from_nanos(1)).is_empty());
        let settled = connecting.go_on(due);
        assert_eq!(settled.len(), ALL);
        for (worker, connected) in settled {
            let why = connected.expect_err("no connection");
            assert!(worker.0 % 2 == 1 && why.contains("timed out"), "{worker:?}: {why}");
        }
        assert!(connecting.is_idle() && connecting.due().is_none());
    }

    #[test]
    fn refused_connections_say_why() {
        let (_, closed) = listener();
        let now = Instant::now();
        let mut connecting = connecting(vec![Node::at(listener().0, closed), near()]);
        connecting.ask(now, &workers(0..2 * ALL as u32));
        for (worker, connected) in settle(&mut connecting, 2 * ALL, now) {
            if worker.0 % 2 == 1 {
                assert!(connected.is_ok(), "{worker:?}: {connected:?}");
                continue;
            }
            let why = connected.expect_err("no connection");
            assert!(why.starts_with("no connection to the network namespace"), "{why}");
            assert!(why.contains("refused"), "{why}");
        }
    }

    #[test]
    fn what_nobody_wants_any_more_is_forgotten() {
        let (lost, _elsewhere) = lost();
        let now = Instant::now();
        let mut connecting = connecting(vec![lost]);
        connecting.ask(now, &workers(0..ALL as u32));
        connecting.clear();
        assert!(connecting.is_idle() && connecting.due().is_none());
        assert!(connecting.go_on(now + 2 * PATIENCE).is_empty());
    }
}
