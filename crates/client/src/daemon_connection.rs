//! A program's connection to a daemon, for requests.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use gridrpc_link::payload::{Incoming, divide, section_bytes};
use gridrpc_link::{LinkError, Outbound, Received, Receiver, Socket};
use gridrpc_wire::{FunctionForm, HostCall, Message, Order};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use thiserror::Error;

/// How long a wait lasts before it checks for signals.
const SLICE: Duration = Duration::from_millis(100);

/// Longest message of a daemon of this user, bytes.
pub const MAX_ANSWER: u64 = 1 << 40;

/// Why a request has failed, as a function reports its exceptions.
#[derive(Clone, Debug, Default)]
pub struct RequestError {
    /// Name of the type, as in `Failure`.
    pub error: String,
    /// Message for people.
    pub message: String,
    /// Stack trace.
    pub trace: String,
    /// The pickled exception and its buffers; may be empty.
    pub sections: Vec<Vec<u8>>,
}

/// Sections of a request or of its answer, and the byte order of the numbers in them.
#[derive(Clone, Debug)]
pub struct RequestSections {
    /// The sections.
    pub sections: Vec<Vec<u8>>,
    /// Their byte order.
    pub order: Order,
}

impl From<Vec<Vec<u8>>> for RequestSections {
    /// In this machine's byte order.
    fn from(sections: Vec<Vec<u8>>) -> RequestSections {
        RequestSections { sections, order: Order::NATIVE }
    }
}

/// Why a request has no answer.
#[derive(Debug, Error)]
pub enum DaemonRequestError {
    /// The request has failed there.
    #[error("{}: {}", .0.error, .0.message)]
    Failed(RequestError),
    /// The daemon accepts no connection, with the reason.
    #[error("{0}")]
    Refused(String),
    /// No answer came in time.
    #[error("no answer came in time")]
    Silent,
    /// The daemon has closed the connection.
    #[error("the daemon is gone")]
    Gone,
    /// The caller has interrupted the wait.
    #[error("interrupted")]
    Interrupted,
    /// The other end does not speak the protocol.
    #[error(transparent)]
    Link(#[from] LinkError),
}

/// A connection for requests, one at a time.
#[derive(Debug)]
pub struct DaemonConnection {
    socket: Socket,
    receiver: Receiver,
    up: Outbound,
    /// Whether the socket takes no more bytes for now.
    blocked: Arc<AtomicBool>,
    /// Numbers of the requests' names.
    names: HashMap<String, u32>,
    calls: u64,
}

/// The answer to a request.
type Answer = Result<RequestSections, RequestError>;

impl DaemonConnection {
    /// Uses a connected socket, and waits until the daemon has greeted. `most`: longest message of the daemon, bytes.
    /// `interrupted` is called several times a second and ends the wait when it returns `true`.
    ///
    /// # Errors
    /// When the daemon refuses the connection, is gone, or does not answer in time.
    pub fn open(
        socket: Socket,
        most: u64,
        until: Option<Instant>,
        interrupted: &mut dyn FnMut() -> bool,
    ) -> Result<DaemonConnection, DaemonRequestError> {
        let blocked = Arc::new(AtomicBool::new(false));
        let watched = Arc::clone(&blocked);
        let watch = move |is_blocked| watched.store(is_blocked, Ordering::Release);
        let up = Outbound::new(Arc::clone(&socket), Box::new(watch));
        let receiver = Receiver::new(Arc::clone(&socket), most);
        let (names, calls) = (HashMap::new(), 0);
        let mut connection = DaemonConnection { socket, receiver, up, blocked, names, calls };
        let greeted =
            connection.receive(until, interrupted, |received| match received.message {
                Message::Join(_) => Ok(Some(Ok(()))),
                Message::NoWorkers(loss) => {
                    Ok(Some(Err(DaemonRequestError::Refused(loss.why.to_owned()))))
                }
                other => Err(LinkError::Unexpected(format!("{:?}", other.kind()))),
            })?;
        greeted.map(|()| connection)
    }

    /// Makes a request and waits for its answer. After any other error than `Failed` the connection is of no use.
    ///
    /// # Errors
    /// When the request fails, or no answer comes in time.
    pub fn request(
        &mut self,
        name: &str,
        sections: impl Into<RequestSections>,
        until: Option<Instant>,
        interrupted: &mut dyn FnMut() -> bool,
    ) -> Result<RequestSections, DaemonRequestError> {
        let RequestSections { sections, order } = sections.into();
        let wrong = |error| DaemonRequestError::Link(LinkError::Wire(error));
        let next = self.names.len() as u32;
        let function = *self.names.entry(name.to_owned()).or_insert(next);
        if function == next {
            let (form, sections) = (FunctionForm::Named, Vec::new());
            self.up.push(&Message::Function { function, form, name, sections }).map_err(wrong)?;
        }
        self.calls += 1;
        let call = self.calls;
        let parts: Vec<Incoming> = sections.into_iter().map(Incoming::Bytes).collect();
        let (sections, streams) = divide(&parts);
        let (on, idempotent, blobs) = (u32::MAX, false, Vec::new());
        let message =
            Message::HostCall(HostCall { call, function, on, idempotent, blobs, sections });
        self.up.push_in(order, &message, streams).map_err(wrong)?;
        self.up.flush();
        let answer = self.receive(until, interrupted, |received| {
            let Received { message, order, streams, .. } = received;
            Ok(match message {
                Message::Reply { call: of, ref sections, .. } if of == call => {
                    let sections = section_bytes(sections, streams);
                    Some(Ok(RequestSections { sections, order }))
                }
                Message::Failure { call: of, error, message, trace, ref sections, .. }
                    if of == call =>
                {
                    Some(Answer::Err(RequestError {
                        error: error.to_owned(),
                        message: message.to_owned(),
                        trace: trace.to_owned(),
                        sections: section_bytes(sections, streams),
                    }))
                }
                other => return Err(LinkError::Unexpected(format!("{:?}", other.kind()))),
            })
        })?;
        answer.map_err(DaemonRequestError::Failed)
    }

    /// Waits for the message that `find` wants.
    fn receive<T>(
        &mut self,
        until: Option<Instant>,
        interrupted: &mut dyn FnMut() -> bool,
        mut find: impl FnMut(Received<'_>) -> Result<Option<T>, LinkError>,
    ) -> Result<T, DaemonRequestError> {
        let mut found = None;
        loop {
            match self.receiver.fill() {
                Ok(0) => return Err(DaemonRequestError::Gone),
                Ok(_) => {
                    self.receiver.drain(|received| -> Result<(), LinkError> {
                        if let Some(wanted) = find(received)? {
                            found = Some(wanted);
                        }
                        Ok(())
                    })?;
                    if let Some(found) = found {
                        return Ok(found);
                    }
                    continue;
                }
                Err(error) if is_passing(&error) => {}
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe
                    ) =>
                {
                    return Err(DaemonRequestError::Gone);
                }
                Err(error) => return Err(LinkError::Io(error).into()),
            }
            if until.is_some_and(|until| Instant::now() >= until) {
                return Err(DaemonRequestError::Silent);
            }
            if interrupted() {
                return Err(DaemonRequestError::Interrupted);
            }
            self.wait(until);
        }
    }

    /// Waits for input, and sends what the socket takes again.
    fn wait(&self, until: Option<Instant>) {
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        let timeout = left.map_or(SLICE, |left| left.min(SLICE) + Duration::from_millis(1));
        let mut flags = PollFlags::POLLIN;
        flags.set(PollFlags::POLLOUT, self.blocked.load(Ordering::Acquire));
        let mut waited = [PollFd::new(self.socket.socket(), flags)];
        // A signal ends the wait, and the caller checks for it.
        let _ = poll(&mut waited, PollTimeout::try_from(timeout).unwrap_or(PollTimeout::MAX));
        if waited[0].revents().is_some_and(|events| events.contains(PollFlags::POLLOUT)) {
            self.up.flush();
        }
    }
}

/// Whether the error only means that nothing can be read right now.
fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
