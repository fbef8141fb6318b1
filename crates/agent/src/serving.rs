//! Service loop for one client, whose calls run on a grid of this process. The grid may have other clients.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use gridrpc_client::{Grid, Waiter};
use gridrpc_core::Owner;
use gridrpc_link::{LinkError, Received, Receiver};
use gridrpc_sys::monotonic_ns;
use gridrpc_sys::spin_wait::SpinWait;
use gridrpc_wire::{Compression, Message, PARTING};

use crate::answers::Answers;
use crate::broadcast::Broadcast;
use crate::calls::Calls;
use crate::client_blobs::BlobNumbers;
use crate::connection::Connection;
use crate::error::AgentError;
use crate::handshake::is_passing;
use crate::heartbeat::Heartbeats;
use crate::incoming::whole;
use crate::modules::ModuleFiles;
use crate::service::Access;

/// A client may be silent for this multiple of the heartbeat: it may be delayed or suspended by its user. If
/// it has ended, the connection ends.
const HANDSHAKE_TIMEOUT: u32 = 10;
/// How many reads from the client, while streams arrive, before the loop checks everything else.
const TAKEN_AT_ONCE: u32 = 16;
/// Bytes between two waits that indicate a fast link; on such a link it spins for more instead of sleeping.
const FAST: usize = 8 << 10;
/// How long a client may take to learn that it is served no more.
const PARTING_TIME: Duration = Duration::from_millis(500);
/// How long the loop waits for nothing but the answer to a call, while calls tend to be shorter.
const SHORT: Duration = Duration::from_millis(1);

/// How a client is served.
pub(super) struct Terms {
    pub(super) owner: Owner,
    /// What the client may do; none: everything.
    pub(super) access: Option<Arc<dyn Access>>,
    /// Whether the client may send functions, modules, and names of modules to import.
    pub(super) takes_code: bool,
    /// How long the client may be silent, and waits for a sign of life; none: forever.
    pub(super) heartbeat: Option<Duration>,
    pub(super) heartbeats: Arc<Heartbeats>,
    pub(super) compression: Compression,
    pub(super) modules: ModuleFiles,
    /// Exchange of shared data with other agents of the client; none: it sends all itself.
    pub(super) spreading: Option<Broadcast>,
    /// Numbers of shared data that are in use.
    pub(super) numbers: Arc<BlobNumbers>,
    /// Set when the client is not to be served any more.
    pub(super) unwanted: Arc<AtomicBool>,
}

/// A client, and the grid that serves it.
struct Client {
    grid: Arc<Grid>,
    takes_code: bool,
    answers: Arc<Answers>,
    calls: Calls,
    spreading: Option<Broadcast>,
    /// The number of workers for calls reported last.
    ready: Option<u32>,
    unwanted: Arc<AtomicBool>,
    waiter: Waiter,
    /// Whether the client makes short calls, one at a time.
    short_calls: SpinWait,
    /// Spin wait for incoming streams.
    streaming: SpinWait,
    /// Spin wait for the next call of a client that waits for each of its calls.
    arrivals: SpinWait,
    /// When the only call of the client was answered, ns, if that was just now.
    answered: Option<u64>,
    /// Until when the server waits for the client to learn that it is served no more.
    parting: Option<Instant>,
    /// The client has said goodbye, or has learnt that it is served no more.
    ended: bool,
}

/// Serves a client on a grid until it disconnects. The grid and its other clients continue.
///
/// # Errors
/// When the client violates the protocol or vanishes.
pub(super) fn serve(
    grid: &Arc<Grid>,
    mut connection: Connection,
    terms: Terms,
) -> Result<(), AgentError> {
    let Terms { owner, access, takes_code, heartbeat, compression, modules, .. } = terms;
    let Terms { heartbeats, spreading, numbers, unwanted, .. } = terms;
    let answers = Arc::clone(&connection.answers);
    let beating = heartbeat.map(|heartbeat| heartbeats.add(heartbeat, &answers)).transpose();
    answers.up.compress(compression);
    connection.places.belong_to(grid);
    connection.receiver.place_streams(connection.places.placement());
    let calls = Calls::new(grid, owner, access, &answers, &connection.places, modules, numbers);
    let mut arrivals = SpinWait::default();
    arrivals.set_yields(true);
    let mut client = Client {
        grid: Arc::clone(grid),
        takes_code,
        answers,
        calls,
        spreading,
        ready: None,
        unwanted,
        waiter: grid.waiter(),
        short_calls: SpinWait::default(),
        streaming: SpinWait::default(),
        arrivals,
        answered: None,
        parting: None,
        ended: false,
    };
    let timeout = heartbeat.map(|heartbeat| heartbeat * HANDSHAKE_TIMEOUT);
    let served = beating
        .map_err(|error| AgentError::System { what: "starting a thread", error })
        .and_then(|_| client.serve(&mut connection, timeout));
    // Also if it was not served: it is an owner of the grid.
    client.calls.end();
    served
}

impl Client {
    fn serve(
        &mut self,
        connection: &mut Connection,
        timeout: Option<Duration>,
    ) -> Result<(), AgentError> {
        let mut heard = Instant::now();
        // Messages that arrived together with the request to serve.
        connection.receiver.drain(|received| self.take(received))?;
        while !self.ended && self.parting.is_none_or(|until| Instant::now() < until) {
            if self.parting.is_none() && self.unwanted.load(Ordering::Acquire) {
                self.part();
            }
            if self.answers.take_changed() {
                self.report_workers();
            }
            if self.answers.take_freed() {
                self.calls.start_held();
                self.wait_for_an_answer();
            }
            self.calls.share_arrived()?;
            let due = self.spreading.as_ref().and_then(Broadcast::look);
            self.answers.send();
            let silent = timeout
                .map(|timeout| timeout.saturating_sub(heard.elapsed()) + Duration::from_millis(1));
            let due = due.into_iter().chain(self.parting).min();
            let due = due.map(|due| due.saturating_duration_since(Instant::now()));
            let answered = self.answered.take();
            let mut first = None;
            let sleeps = answered.filter(|_| {
                // Reads at once instead of polling first, which would take a system call more.
                !self.arrivals.look(|| {
                    let filled = connection.receiver.fill();
                    first = (!filled.as_ref().is_err_and(is_passing)).then_some(filled);
                    first.is_some()
                })
            });
            if first.is_some() || connection.wait(silent.into_iter().chain(due).min()) {
                if let Some(answered) = sleeps {
                    self.arrivals.slept(monotonic_ns() - answered);
                }
                match self.receive(&mut connection.receiver, first)? {
                    Some(0) => return Ok(()),
                    Some(_) => heard = Instant::now(),
                    None => {}
                }
            }
            if let Some(timeout) = timeout
                && heard.elapsed() > timeout
            {
                return Err(AgentError::Silent(timeout));
            }
        }
        Ok(())
    }

    /// Handles input from the client. `first`: the result of the first read, if that is done. Returns the size of the
    /// last read: 0 if the client is gone, none if there was no input.
    fn receive(
        &mut self,
        receiver: &mut Receiver,
        mut first: Option<io::Result<usize>>,
    ) -> Result<Option<usize>, AgentError> {
        let (mut came, mut burst) = (None, 0);
        for _ in 0..TAKEN_AT_ONCE {
            match first.take().unwrap_or_else(|| receiver.fill()) {
                Ok(0) => return Ok(Some(0)),
                Ok(count) => {
                    came = Some(count);
                    burst += count;
                }
                // On a fast link, the rest of a stream arrives sooner than this thread could sleep and wake
                // up.
                Err(error) if is_passing(&error) => {
                    let fast = std::mem::take(&mut burst) >= FAST && receiver.expects_more();
                    if fast && self.streaming.look(|| receiver.is_readable()) {
                        continue;
                    }
                    break;
                }
                Err(error) => return Err(LinkError::Io(error).into()),
            }
            receiver.drain(|received| self.take(received))?;
            if !receiver.expects_more() {
                break;
            }
        }
        if came.is_some() {
            self.wait_for_an_answer();
        }
        Ok(came)
    }

    /// Reads the answer to a single call that the client waits for: passing it from thread to thread takes longer than
    /// a call of a microsecond.
    fn wait_for_an_answer(&mut self) {
        let submitted = std::mem::take(&mut self.calls.submitted);
        if submitted == 0 {
            return;
        }
        let Some((call, grid, is_lone)) = self.answers.any() else { return };
        let own = Arc::ptr_eq(&grid, &self.grid);
        let elsewhere = (!own).then(|| grid.waiter());
        let waiter = elsewhere.as_ref().unwrap_or(&self.waiter);
        if submitted > 1 || !is_lone || !self.short_calls.makes_sense() {
            waiter.leave_to_grid();
        } else {
            // An address that no other client has while this one lives.
            let caller = Arc::as_ptr(&self.answers).addr();
            let has_ended = waiter.lead(caller, &call, SHORT);
            self.short_calls.note(has_ended);
            self.answered = (has_ended == Some(true)).then(monotonic_ns);
        }
    }

    /// Gives back the calls that no worker has begun, so that they can run elsewhere or later. The client sends none
    /// once it has learnt that there are no workers; its answer to the ping tells when.
    fn part(&mut self) {
        let wanted = self.grid.workers();
        self.answers.tell(&Message::Workers { ready: 0, wanted });
        self.calls.retract_all();
        self.answers.tell(&Message::Ping { number: PARTING });
        self.parting = Some(Instant::now() + PARTING_TIME);
    }

    /// Reports the number of workers to the client, and the state of reserved ones.
    fn report_workers(&mut self) {
        if self.parting.is_some() {
            return;
        }
        let wanted = self.grid.workers();
        let counts = self.grid.counts();
        // Clients send calls to ready workers only, and hosts on demand start only for calls that are here.
        let ready = (counts.ready + counts.on_demand) as u32;
        if self.ready != Some(ready) {
            self.ready = Some(ready);
            self.answers.tell(&Message::Workers { ready, wanted });
        }
        self.calls.reservations.report();
    }

    fn take(&mut self, received: Received<'_>) -> Result<(), LinkError> {
        let Received { message, order, streams, descriptors, .. } = received;
        match message {
            Message::HostCall(call) if self.parting.is_some() => {
                self.answers.tell(&Message::Retracted { calls: vec![call.call] });
            }
            Message::HostCall(call) => self.calls.arrived(&call, order, streams),
            Message::Wide { call, slots, threads } => self.calls.announce(call, slots, threads)?,
            Message::Trace { call, context } => self.calls.announce_trace(call, context),
            Message::Function { function, form, name, sections } => {
                self.calls.learn(function, form, name, &sections, streams)?;
            }
            Message::Module { .. } | Message::Prepare(_) if !self.takes_code => {}
            Message::Module { hash, name, sections } => {
                let content = whole(&sections, streams);
                self.calls.modules.keep(hash, name, &content);
            }
            Message::Blob { blob, sections } => {
                self.calls.blobs.receive(blob, &sections, streams)?;
                self.calls.share_arrived()?;
                // Also if it is too large: calls that wait for it end then.
                self.calls.try_early();
            }
            Message::DropBlob { blob } => {
                self.calls.blobs.drop_one(blob);
                self.answers.tell(&Message::BlobDropped { blob, unread: true });
                // Those that wait for it are given back.
                self.calls.try_early();
            }
            Message::Segment { segment, len } => {
                self.calls.add_segment(segment, len, descriptors)?;
            }
            Message::DropSegment { segment } => self.calls.drop_segment(segment),
            Message::Cancel { call } => self.calls.cancel(call),
            Message::Retract { calls } => self.calls.retract(calls),
            Message::Detach { call } => self.calls.detach(call),
            Message::KeepResult { call } => self.answers.keep(call),
            Message::FetchResult { call } => self.answers.fetch(call),
            Message::DropResult { call } => self.answers.held_results.drop_result(call),
            Message::CallbackReply { call, sections } => {
                self.calls.callback_replied(call, &sections, order, streams);
            }
            Message::CallbackFailure { call, message } => {
                self.calls.waiting.answer(call, Err(message.to_owned()));
            }
            Message::Reserve { number } => self.calls.reservations.reserve(number),
            Message::Dismiss { number } => self.calls.reservations.dismiss(number),
            Message::Prepare(prepare) => {
                prepare.modules.iter().for_each(|module| self.grid.prepare(module));
            }
            Message::Pass { blob, to, secret, addresses } => match &self.spreading {
                Some(spreading) => spreading.pass(blob, to, secret, &addresses),
                None => self.answers.tell(&Message::NotPassed { blob, to }),
            },
            Message::PassResult { call, blob, to, secret, addresses } => match &self.spreading {
                Some(spreading) => spreading.pass_result(call, blob, to, secret, &addresses),
                None => self.answers.tell(&Message::NotPassed { blob, to }),
            },
            Message::Expect { blob, secret } => match &mut self.spreading {
                Some(spreading) => spreading.expect(blob, &secret),
                None => self.answers.tell(&Message::Missing { blob }),
            },
            Message::Ping { number } => {
                self.answers.tell(&Message::Pong { number, clock: monotonic_ns() });
                self.answers.send();
            }
            Message::Pong { number: PARTING, .. } => self.ended = true,
            Message::Pong { .. } => {}
            Message::Hold { bytes } => self.answers.hold(bytes),
            Message::Fetch => self.answers.fetched(),
            Message::Goodbye => self.ended = true,
            other => return Err(LinkError::Unexpected(format!("{:?}", other.kind()))),
        }
        Ok(())
    }
}
