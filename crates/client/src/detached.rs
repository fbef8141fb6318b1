//! Detached calls: a server keeps them and their results when the client is gone.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use gridrpc_core::End;
use gridrpc_link::payload::Incoming;
use gridrpc_wire::{Order, RemoteError};
use serde::Deserialize;
use thiserror::Error;

use crate::call::{Call, Outcome};
use crate::daemon_connection::{
    DaemonConnection, DaemonRequestError, MAX_ANSWER, RequestError, RequestSections,
};

use crate::server_access::{ServerAccess, ServerUnreachable};
use crate::server_catalogue::ServerCatalogue;

/// In front of the number of a call in its id.
const IN_ID: &str = "/d/";
/// How long one request waits for calls to end, seconds.
const WAIT: &str = "20";
/// How long a server may take to answer anything else, also if many bytes are on their way.
pub(crate) const PATIENCE: Duration = Duration::from_secs(600);
/// Pause before a server that cannot be reached is dialled again.
const PAUSE: Duration = Duration::from_millis(200);
/// Most calls that one request waits for.
const MAX_IDS: usize = 1 << 16;
/// Largest request that a server takes, bytes.
const MAX_REQUEST: u64 = 256 << 20;

/// Why a request about a detached call has failed.
#[derive(Debug, Error)]
pub enum DetachedError {
    /// The server cannot be reached.
    #[error(transparent)]
    Unreachable(#[from] ServerUnreachable),
    /// The server refuses it, or the call has failed.
    #[error("{}", .0.message)]
    Failed(RequestError),
    /// The server has not answered.
    #[error("server `{server}` has not answered: {error}")]
    Unanswered {
        /// Its name.
        server: String,
        /// Why not.
        error: DaemonRequestError,
    },
    /// Its answer is invalid.
    #[error("server `{server}` has sent an answer that makes no sense: {why}")]
    Malformed {
        /// Its name.
        server: String,
        /// The problem.
        why: String,
    },
    /// The arguments are too large.
    #[error("the arguments have {bytes} bytes: a detached call takes at most {MAX_REQUEST}")]
    TooLarge {
        /// Their size.
        bytes: u64,
    },
    /// It is not the id of a detached call.
    #[error(
        "`{id}` is not the id of a detached call: such ids look like `gridrpc://host:port/d/NUMBER`"
    )]
    NotAnId {
        /// The text.
        id: String,
    },
}

/// A detached call as its server describes it.
#[derive(Clone, Debug, Deserialize)]
pub struct DetachedCall {
    /// Its id.
    pub id: String,
    /// `module/function`.
    pub function: String,
    /// Whether it may run again.
    pub idempotent: bool,
    /// When it was detached, seconds since 1970.
    pub submitted: u64,
    /// `queued`, `running`, `done` or `failed`.
    pub state: String,
    /// Values of its arguments, if they were requested.
    #[serde(skip)]
    pub values: Vec<u8>,
    /// Their byte order.
    #[serde(skip)]
    pub order: Order,
}

/// The URL of the server of a detached call.
///
/// # Errors
/// When the text is not an id.
pub fn server_of_detached(id: &str) -> Result<&str, DetachedError> {
    let split = id.rsplit_once(IN_ID).filter(|(server, number)| {
        server.starts_with("gridrpc") && !number.is_empty() && !number.contains('/')
    });
    split.map(|(server, _)| server).ok_or_else(|| DetachedError::NotAnId { id: id.to_owned() })
}

/// The number of a detached call at its server.
fn number_of(id: &str) -> &str {
    id.rsplit_once(IN_ID).map_or(id, |(_, number)| number)
}

pub(crate) type Interrupted<'a> = &'a mut dyn FnMut() -> bool;

impl ServerCatalogue {
    /// Detaches a call of `function` (`module/function#hash`). It survives a restart of the server when this returns.
    /// Returns its id.
    ///
    /// # Errors
    /// When the server cannot be reached or refuses it.
    pub fn detach(
        &self,
        function: &str,
        idempotent: bool,
        arguments: RequestSections,
        interrupted: Interrupted<'_>,
    ) -> Result<String, DetachedError> {
        let RequestSections { sections: arguments, order } = arguments;
        let bytes = arguments.iter().map(|section| section.len() as u64).sum();
        if bytes > MAX_REQUEST {
            return Err(DetachedError::TooLarge { bytes });
        }
        let again: &[u8] = if idempotent { b"1" } else { b"" };
        let mut sections = vec![function.as_bytes().to_vec(), again.to_vec()];
        sections.extend(arguments);
        let sections = RequestSections { sections, order };
        let number = self.ask_for_text("detach", sections, interrupted)?;
        Ok(self.id_of(&number))
    }

    /// A detached call of this user.
    ///
    /// # Errors
    /// When the server cannot be reached, or keeps no such call.
    pub fn detached(
        &self,
        id: &str,
        interrupted: Interrupted<'_>,
    ) -> Result<DetachedCall, DetachedError> {
        let answer = self.ask("call", vec![number_of(id).as_bytes().to_vec()], interrupted)?;
        let RequestSections { sections, order } = answer;
        let mut answer = sections.into_iter();
        let described = answer.next().unwrap_or_default();
        let mut call: DetachedCall = serde_json::from_slice(&described)
            .map_err(|error| self.makes_no_sense(error.to_string()))?;
        (call.values, call.order) = (answer.next().unwrap_or_default(), order);
        call.id = self.id_of(&call.id);
        Ok(call)
    }

    /// The detached calls of this user, the oldest first.
    ///
    /// # Errors
    /// When the server cannot be reached.
    pub fn detached_calls(
        &self,
        interrupted: Interrupted<'_>,
    ) -> Result<Vec<DetachedCall>, DetachedError> {
        let described = self.ask_for_text("calls", vec![], interrupted)?;
        let mut calls: Vec<DetachedCall> = serde_json::from_str(&described)
            .map_err(|error| self.makes_no_sense(error.to_string()))?;
        calls.iter_mut().for_each(|call| call.id = self.id_of(&call.id));
        Ok(calls)
    }

    /// Cancels a detached call. Returns whether it had not ended yet.
    ///
    /// # Errors
    /// When the server cannot be reached, or keeps no such call.
    pub fn cancel_detached(
        &self,
        id: &str,
        interrupted: Interrupted<'_>,
    ) -> Result<bool, DetachedError> {
        let number = number_of(id).as_bytes().to_vec();
        Ok(self.ask_for_text("cancel", vec![number], interrupted)? == "1")
    }

    pub(crate) fn id_of(&self, number: &str) -> String {
        format!("{}{IN_ID}{number}", self.access.address.url())
    }

    pub(crate) fn makes_no_sense(&self, why: impl Into<String>) -> DetachedError {
        DetachedError::Malformed { server: self.name.clone(), why: why.into() }
    }

    pub(crate) fn ask_for_text(
        &self,
        name: &str,
        sections: impl Into<RequestSections>,
        interrupted: Interrupted<'_>,
    ) -> Result<String, DetachedError> {
        let answer = self.ask(name, sections, interrupted)?.sections.into_iter().next();
        String::from_utf8(answer.unwrap_or_default()).map_err(|_| self.makes_no_sense("no UTF-8"))
    }

    pub(crate) fn ask(
        &self,
        name: &str,
        sections: impl Into<RequestSections>,
        interrupted: Interrupted<'_>,
    ) -> Result<RequestSections, DetachedError> {
        let mut connection = self.connect(interrupted)?;
        let until = Some(Instant::now() + PATIENCE);
        let answered = connection.request(name, sections, until, interrupted);
        answered.map_err(|error| self.unanswered(error))
    }

    pub(crate) fn connect(
        &self,
        interrupted: Interrupted<'_>,
    ) -> Result<DaemonConnection, DetachedError> {
        let until = Instant::now() + self.access.timeout;
        let socket = self.access.dial()?;
        DaemonConnection::open(socket, MAX_ANSWER, Some(until), interrupted)
            .map_err(|error| self.unanswered(error))
    }

    pub(crate) fn unanswered(&self, error: DaemonRequestError) -> DetachedError {
        match error {
            DaemonRequestError::Failed(failed) => DetachedError::Failed(failed),
            error => DetachedError::Unanswered { server: self.name.clone(), error },
        }
    }
}

/// Waits for detached calls of one server, in a thread that runs while there are any.
pub(crate) struct DetachedWatcher {
    server: Arc<ServerCatalogue>,
    /// Makes a thread that waits for a call check again: it may read answers of workers meanwhile.
    nudge: Box<dyn Fn() + Send + Sync>,
    state: Mutex<Watched>,
}

impl fmt::Debug for DetachedWatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DetachedWatcher").field("state", &self.state).finish_non_exhaustive()
    }
}

#[derive(Debug, Default)]
struct Watched {
    /// The calls that wait, by number.
    calls: HashMap<String, Vec<Weak<Call>>>,
    /// Those to cancel, by number.
    to_cancel: Vec<String>,
    /// Whether there is more to request than at the last request.
    has_more: bool,
    has_thread: bool,
    is_closed: bool,
}

impl DetachedWatcher {
    pub(crate) fn new(
        server: Arc<ServerCatalogue>,
        nudge: Box<dyn Fn() + Send + Sync>,
    ) -> Arc<DetachedWatcher> {
        Arc::new(DetachedWatcher { server, nudge, state: Mutex::default() })
    }

    fn lock(&self) -> MutexGuard<'_, Watched> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a call, too.
    pub(crate) fn add(
        watcher: &Arc<DetachedWatcher>,
        id: &str,
        call: &Arc<Call>,
    ) -> io::Result<()> {
        let mut state = watcher.lock();
        if !state.has_thread {
            let this = Arc::clone(watcher);
            let thread = thread::Builder::new().name("gridrpc-detached".to_owned());
            thread.spawn(move || this.run())?;
            state.has_thread = true;
        }
        state.calls.entry(number_of(id).to_owned()).or_default().push(Arc::downgrade(call));
        state.has_more = true;
        Ok(())
    }

    /// Cancels the detached call that `call` waits for. Returns whether it waits.
    pub(crate) fn cancel(&self, call: &Call) -> bool {
        let mut state = self.lock();
        let is_it = |one: &Weak<Call>| std::ptr::eq(one.as_ptr(), call);
        let waiting = state.calls.iter().find(|(_, calls)| calls.iter().any(is_it));
        let Some(number) = waiting.map(|(number, _)| number.clone()) else { return false };
        state.to_cancel.push(number);
        state.has_more = true;
        true
    }

    /// Ends the calls that wait. The thread ends soon.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.is_closed = true;
        let calls = std::mem::take(&mut state.calls);
        drop(state);
        for call in calls.into_values().flatten().filter_map(|call| call.upgrade()) {
            self.finish(&call, Outcome::Ended(End::Closed));
        }
    }

    fn finish(&self, call: &Call, outcome: Outcome) {
        if !call.done() {
            call.finish(outcome, None);
            (self.nudge)();
        }
    }

    fn run(&self) {
        let mut connection = None;
        let mut lost: Option<Instant> = None;
        loop {
            let mut state = self.lock();
            // Nobody can take the results of calls that have been dropped.
            state.calls.retain(|_, calls| calls.iter().any(|call| call.strong_count() > 0));
            if state.calls.is_empty() || state.is_closed {
                state.has_thread = false;
                return;
            }
            state.has_more = false;
            let numbers: Vec<String> = state.calls.keys().take(MAX_IDS).cloned().collect();
            let to_cancel = std::mem::take(&mut state.to_cancel);
            drop(state);
            for number in to_cancel {
                match self.server.cancel_detached(&number, &mut || self.lock().is_closed) {
                    // There is nothing to cancel: `wait` finds out why.
                    Ok(_) | Err(DetachedError::Failed(_)) => {}
                    Err(_) => {
                        self.lock().to_cancel.push(number);
                        break;
                    }
                }
            }
            let error = match self.take_ended(&mut connection, &numbers) {
                Ok(()) => {
                    lost = None;
                    continue;
                }
                Err(error) => error,
            };
            connection = None;
            let ServerAccess { timeout, .. } = self.server.access;
            let failure = match error {
                DetachedError::Unanswered { error: DaemonRequestError::Interrupted, .. } => {
                    continue;
                }
                DetachedError::Failed(failed) => failed,
                _ if lost.get_or_insert_with(Instant::now).elapsed() < timeout => {
                    thread::sleep(PAUSE);
                    continue;
                }
                error => RequestError {
                    error: RemoteError::CallLost.name().to_owned(),
                    message: format!(
                        "{error}; the call is still detached: attach to it again later"
                    ),
                    ..RequestError::default()
                },
            };
            numbers.iter().for_each(|number| self.end(number, Err(failure.clone())));
        }
    }

    /// Waits until some of these calls have ended, and takes their results.
    fn take_ended(
        &self,
        cached: &mut Option<DaemonConnection>,
        numbers: &[String],
    ) -> Result<(), DetachedError> {
        let mut interrupted = || {
            let state = self.lock();
            state.has_more || state.is_closed
        };
        let mut connection = match cached.take() {
            Some(connection) => connection,
            None => self.server.connect(&mut || self.lock().is_closed)?,
        };
        let until = Some(Instant::now() + PATIENCE);
        let sections: Vec<Vec<u8>> = vec![numbers.join("\n").into_bytes(), WAIT.into()];
        let answer = connection
            .request("wait", sections, until, &mut interrupted)
            .map_err(|error| self.server.unanswered(error))?;
        let ended = answer.sections.into_iter().next().unwrap_or_default();
        let ended = String::from_utf8_lossy(&ended).into_owned();
        for number in ended.lines() {
            let until = Some(Instant::now() + PATIENCE);
            let closed = &mut || self.lock().is_closed;
            match connection.request("result", vec![number.as_bytes().to_vec()], until, closed) {
                Ok(sections) => self.end(number, Ok(sections)),
                Err(DaemonRequestError::Failed(failure)) => self.end(number, Err(failure)),
                Err(error) => return Err(self.server.unanswered(error)),
            }
        }
        *cached = Some(connection);
        Ok(())
    }

    /// Ends what waits for a call.
    fn end(&self, number: &str, answer: Result<RequestSections, RequestError>) {
        let calls = self.lock().calls.remove(number).unwrap_or_default();
        for call in calls.iter().filter_map(Weak::upgrade) {
            let bytes =
                |sections: Vec<Vec<u8>>| sections.into_iter().map(Incoming::Bytes).collect();
            let outcome = match answer.clone() {
                Ok(RequestSections { sections, order }) => {
                    Outcome::Returned(bytes(sections), order)
                }
                Err(RequestError { error, message, trace, sections }) => {
                    let (sections, order) = (bytes(sections), Order::NATIVE);
                    Outcome::Raised { error, message, trace, sections, order }
                }
            };
            self.finish(&call, outcome);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_names_its_server() {
        for server in ["gridrpc://host:7711", "gridrpc+unix:///run/d/gridrpc/socket"] {
            assert_eq!(server_of_detached(&format!("{server}/d/0a")).unwrap(), server);
        }
        for id in ["", "0a", "gridrpc://host:7711", "gridrpc://host/d/", "ssh://host/d/0a"] {
            assert!(server_of_detached(id).is_err(), "{id}");
        }
    }
}
