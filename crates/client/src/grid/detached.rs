//! Detached calls of servers of the grid.

use std::io;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use gridrpc_link::payload::{Outgoing, Payload};
use gridrpc_shm::segment::InPlaceResult;
use gridrpc_wire::{Message, Order, RemoteError};

use crate::call::{Call, Extras, Outcome};
use crate::daemon_connection::DaemonRequestError;
use crate::detached::{DetachedError, DetachedWatcher, Interrupted, PATIENCE};
use crate::error::GridError;
use crate::function::FunctionRef;
use crate::grid::Grid;
use crate::server_catalogue::ServerCatalogue;

/// How often a thread that waits for a server checks whether something else has ended the call.
const CHECK: Duration = Duration::from_millis(20);

impl Grid {
    /// A call that ends with the result of a detached call of a server. Ending it does not end the call there.
    ///
    /// # Errors
    /// When the system refuses a thread.
    pub fn attach_detached(
        &self,
        server: &Arc<ServerCatalogue>,
        id: &str,
        function: Arc<FunctionRef>,
    ) -> Result<Arc<Call>, GridError> {
        self.check_process()?;
        let idempotent = true;
        let (payload, extras, after) = (Payload::default(), Extras::default(), Vec::new());
        let call = Call::new(function, payload, extras, after, idempotent);
        self.attach_withdrawn(server, id, &call)?;
        Ok(call)
    }

    /// Lets a call that the grid does not have, or not any more, end with the result of a detached call.
    ///
    /// # Errors
    /// When the system refuses a thread.
    pub fn attach_withdrawn(
        &self,
        server: &Arc<ServerCatalogue>,
        id: &str,
        call: &Arc<Call>,
    ) -> Result<(), GridError> {
        let mut watchers = self.watchers.lock().unwrap_or_else(PoisonError::into_inner);
        let watcher = watchers.entry(server.name.clone()).or_insert_with(|| {
            let waiter = self.waiter();
            DetachedWatcher::new(Arc::clone(server), Box::new(move || waiter.nudge()))
        });
        DetachedWatcher::add(watcher, id, call)
            .map_err(|error| GridError::System { what: "starting a thread", error })
    }

    /// Has the server that has got a call keep it as a detached one. Returns its id; none: no server has the call, others
    /// need its result, or it has ended. The call then waits for [`Grid::attach_withdrawn`].
    ///
    /// # Errors
    /// When the server refuses it, or does not answer.
    pub fn detach_sent(
        &self,
        server: &ServerCatalogue,
        call: &Call,
        interrupted: Interrupted<'_>,
    ) -> Result<Option<String>, DetachedError> {
        let Some(id) = call.id() else { return Ok(None) };
        let (answer, answers) = mpsc::channel();
        let mut state = self.common.lock();
        let Some(host) = state.core.host_of(id) else { return Ok(None) };
        state.push(host, &Message::Detach { call: id.0 });
        state.detaching.insert(id, answer);
        self.common.finish(state);
        let until = Instant::now() + PATIENCE;
        let why = loop {
            match answers.recv_timeout(CHECK) {
                Ok(Ok(number)) => return Ok(Some(server.id_of(&number))),
                Ok(Err(error)) => return Err(DetachedError::Failed(error)),
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
                Err(RecvTimeoutError::Timeout) if interrupted() => {
                    break DaemonRequestError::Interrupted;
                }
                Err(RecvTimeoutError::Timeout) if Instant::now() > until => {
                    break DaemonRequestError::Silent;
                }
                // It was answered first, or its server is gone.
                Err(RecvTimeoutError::Timeout) if call.done() => {
                    self.common.lock().detaching.remove(&id);
                    return Ok(None);
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        };
        Err(server.unanswered(why))
    }

    /// Ends a withdrawn call that could not be detached.
    pub fn fail_withdrawn(&self, call: &Call, why: &str) {
        let error = RemoteError::CallLost.name().to_owned();
        let (message, trace, sections) = (why.to_owned(), String::new(), Vec::new());
        let order = Order::NATIVE;
        call.finish(Outcome::Raised { error, message, trace, sections, order }, None);
        self.waiter().nudge();
    }

    /// Copies of all sections of a payload.
    ///
    /// # Errors
    /// When one of them is not here, or there is no memory for it.
    pub fn copy_sections(&self, payload: &Payload) -> io::Result<Vec<Vec<u8>>> {
        payload.parts.iter().map(|part| self.copy_section(part)).collect()
    }

    /// A copy of one section.
    ///
    /// # Errors
    /// When it is not here, or there is no memory for it.
    pub fn copy_section(&self, part: &Outgoing) -> io::Result<Vec<u8>> {
        Ok(match part {
            Outgoing::Inline(bytes) => bytes.clone(),
            Outgoing::Stream(source) => {
                let mut copied = Vec::new();
                source.with(|bytes| copied.extend_from_slice(bytes));
                copied
            }
            Outgoing::Shared { lent, offset, len } => {
                InPlaceResult::new(lent, *offset, *len)?.bytes().to_vec()
            }
            Outgoing::Passed(stretch) => stretch.bytes().to_vec(),
            Outgoing::Blob { blob, part, .. } => {
                let state = self.common.lock();
                let data = state.shared.get(&gridrpc_core::BlobId(*blob)).cloned();
                drop(state);
                let data = data.ok_or(io::ErrorKind::NotFound)?;
                data.part(*part as usize).to_vec()
            }
            Outgoing::Argument { .. } | Outgoing::Kept { .. } => {
                return Err(io::ErrorKind::NotFound.into());
            }
        })
    }

    /// Cancels the detached call that this one waits for, soon. Returns whether there is one.
    pub(super) fn cancel_attached(&self, call: &Call) -> bool {
        if call.done() {
            return false;
        }
        let watchers = self.watchers.lock().unwrap_or_else(PoisonError::into_inner);
        watchers.values().any(|watcher| watcher.cancel(call))
    }

    /// Ends the calls that wait for detached ones. Those continue.
    pub(super) fn stop_watching(&self) {
        let watchers =
            std::mem::take(&mut *self.watchers.lock().unwrap_or_else(PoisonError::into_inner));
        watchers.values().for_each(|watcher| watcher.close());
    }
}
