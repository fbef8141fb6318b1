//! Service loop for one client: its calls run on this host's grid.

use std::collections::{HashMap, HashSet};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use gridrpc_client::{
    Callbacks, FunctionRef, Grid, Parent, Request, SharedData, Waiter, loss_on_the_wire,
};
use gridrpc_core::{BlobId, CallOptions, Reservation, Standing};
use gridrpc_link::NOT_PRELOADED;
use gridrpc_link::payload::Payload;
use gridrpc_link::{LinkError, Outbound, Received, Receiver, Socket, Stream};
use gridrpc_shm::segment::Lent;
use gridrpc_sys::monotonic_ns;
use gridrpc_sys::spin_wait::SpinWait;
use gridrpc_transport::TicketKeys;
use gridrpc_transport::dial::Dialled;
use gridrpc_wire::{FunctionForm, HostCall, HostLoss, Message, Section, Stamps};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::eventfd::{EfdFlags, EventFd};

use crate::AgentError;
use crate::answers::{Answers, Running};
use crate::broadcast::Broadcast;
use crate::callbacks::{Backwards, Waiting};
use crate::examination::Examination;
use crate::handshake::{greet, is_passing};
use crate::heartbeat::Heartbeat;
use crate::incoming::{Places, all, whole};
use crate::modules::ModuleFiles;
use crate::shared_data::Filling;
use crate::standard_input::Input;

/// Largest payload accepted, bytes; the address space is the real limit.
const MAX_PAYLOAD: u64 = 1 << 40;
/// A client may be silent for this multiple of the heartbeat: it may be delayed or suspended by its user. If
/// it has ended, the connection ends.
const HANDSHAKE_TIMEOUT: u32 = 10;
/// How many reads from the client, while streams arrive, before the loop checks everything else.
const TAKEN_AT_ONCE: u32 = 16;
/// Bytes between two waits that indicate a fast link; on such a link it spins for more instead of sleeping.
const FAST: usize = 8 << 10;

/// A function registered by the client.
#[derive(Debug)]
enum Known {
    Function(Arc<FunctionRef>),
    /// Its module is unavailable.
    Broken(String),
}

/// A call that arrived before something that it needs.
#[derive(Debug)]
struct Arrived {
    call: u64,
    function: u32,
    on: u32,
    idempotent: bool,
    blobs: Vec<u64>,
    payload: Payload,
    lent: Vec<Option<Arc<Lent>>>,
}

/// A connection to a client, and the grid that serves it.
struct Agent {
    grid: Arc<Grid>,
    answers: Arc<Answers>,
    waiting: Arc<Waiting>,
    places: Places,
    spreading: Broadcast,
    modules: ModuleFiles,
    functions: HashMap<u32, Known>,
    blobs: HashSet<u64>,
    /// Expected multi-core calls: number of workers' slots, and of threads.
    wide: HashMap<u64, (u32, u32)>,
    early: Vec<Arrived>,
    /// Reserved workers by the client's numbers, and whether their readiness has been reported.
    guests: HashMap<u32, (Reservation, bool)>,
    /// The number of ready workers reported last.
    ready: Option<u32>,
    /// Set when standard input has ended: the process that started this agent wants it to stop.
    unwanted: Arc<AtomicBool>,
    /// Calls submitted since the last check for answers.
    submitted: usize,
    waiter: Waiter,
    /// Spin wait for workers' answers.
    patience: SpinWait,
    /// Spin wait for incoming streams.
    streaming: SpinWait,
    /// The client has said goodbye.
    ended: bool,
}

/// Serves the connected client over a non-blocking socket until it disconnects.
///
/// # Errors
/// When it violates the protocol, vanishes, or requests workers that cannot start.
pub(super) fn serve(
    dialled: Dialled,
    keys: Option<&TicketKeys>,
    input: &Input,
) -> Result<(), AgentError> {
    let examining = Examination::new(&dialled);
    let socket: Socket = dialled.transport;
    let system = |what| move |error| AgentError::System { what, error };
    let flags = EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC;
    let wake = EventFd::from_value_and_flags(0, flags)
        .map_err(|errno| system("making an event descriptor")(errno.into()))?;
    let blocked = Arc::new(AtomicBool::new(false));
    let watched = Arc::clone(&blocked);
    let (answers, to_wake) = {
        let cell: Arc<OnceLock<Arc<Answers>>> = Arc::default();
        let waker = Arc::clone(&cell);
        let watch = move |is_blocked| {
            watched.store(is_blocked, Ordering::Release);
            if let Some(answers) = waker.get() {
                let _ = answers.wake.write(1);
            }
        };
        let up = Outbound::new(Arc::clone(&socket), Box::new(watch));
        (Arc::new(Answers::new(up, wake)), cell)
    };
    // The other reference is only for waking and lives as long as the process.
    let _ = to_wake.set(Arc::clone(&answers));
    let mut receiver = Receiver::new(Arc::clone(&socket), MAX_PAYLOAD);
    let places = Places::new(answers.kept.clone());
    let mut spreading =
        Broadcast::new(keys, &places, &answers).map_err(system("opening a port"))?;
    let greeted = greet(&mut receiver, &answers, &socket, &blocked, spreading.port(), examining)?;
    let Some(wanted) = greeted else { return Ok(()) };
    let heart = wanted.heartbeat.map(|heartbeat| Heartbeat::new(heartbeat, &answers));
    let heart = heart.transpose().map_err(system("starting a thread"))?;
    let parent: Arc<dyn Parent> = Arc::clone(&answers) as _;
    answers.up.compress(wanted.compression);
    spreading.compression = wanted.compression;
    let config = match wanted.config() {
        Ok(config) => config,
        Err(why) => {
            let why = format!("{NOT_PRELOADED}{why}");
            let cause = HostLoss::FAILED;
            answers.tell(&Message::NoWorkers(HostLoss { cause, why: &why, ..HostLoss::default() }));
            answers.settle();
            return Err(AgentError::NoWorkers(why));
        }
    };
    let grid = Arc::new(Grid::open_for(config, None, Some(parent))?);
    let unwanted = Arc::new(AtomicBool::new(false));
    let (told, to_wake) = (Arc::clone(&unwanted), Arc::clone(&answers));
    input.tell(move || {
        told.store(true, Ordering::Release);
        let _ = to_wake.wake.write(1);
    });
    places.belong_to(&grid);
    receiver.place_streams(places.placement());
    let waiter = grid.waiter();
    let mut agent = Agent {
        grid,
        answers: Arc::clone(&answers),
        waiting: Arc::default(),
        places,
        spreading,
        modules: wanted.modules,
        functions: HashMap::new(),
        blobs: HashSet::new(),
        wide: HashMap::new(),
        early: Vec::new(),
        guests: HashMap::new(),
        ready: None,
        unwanted,
        submitted: 0,
        waiter,
        patience: SpinWait::with_sleepers(),
        streaming: SpinWait::default(),
        ended: false,
    };
    let patience = wanted.heartbeat.map(|heartbeat| heartbeat * HANDSHAKE_TIMEOUT);
    let served = agent.serve(&mut receiver, &socket, &blocked, patience);
    agent.waiting.give_up();
    agent.grid.close();
    drop(heart);
    served
}

impl Agent {
    fn serve(
        &mut self,
        receiver: &mut Receiver,
        socket: &Socket,
        blocked: &AtomicBool,
        patience: Option<Duration>,
    ) -> Result<(), AgentError> {
        let mut heard = Instant::now();
        // Messages that arrived together with the request to serve.
        receiver.drain(|received| self.take(received))?;
        while !self.ended && !self.unwanted.load(Ordering::Acquire) {
            if self.answers.take_changed() {
                self.tell_workers();
            }
            self.share_arrived()?;
            let due = self.spreading.look();
            self.answers.settle();
            let mut flags = PollFlags::POLLIN;
            flags.set(PollFlags::POLLOUT, blocked.load(Ordering::Acquire));
            let mut waited = [
                PollFd::new(socket.socket(), flags),
                PollFd::new(self.answers.wake.as_fd(), PollFlags::POLLIN),
            ];
            let timeout = match patience {
                None => PollTimeout::NONE,
                Some(patience) => {
                    let left = patience.saturating_sub(heard.elapsed());
                    PollTimeout::try_from(left + Duration::from_millis(1))
                        .unwrap_or(PollTimeout::MAX)
                }
            };
            let timeout = match due {
                _ if receiver.has_more() => PollTimeout::ZERO,
                Some(due) => {
                    let left = due.saturating_duration_since(Instant::now());
                    timeout.min(PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX))
                }
                None => timeout,
            };
            let _ = poll(&mut waited, timeout);
            let ready = |at: usize| waited[at].revents().unwrap_or(PollFlags::empty());
            if ready(1).contains(PollFlags::POLLIN) {
                let _ = self.answers.wake.read();
            }
            if ready(0).contains(PollFlags::POLLOUT) {
                self.answers.up.flush();
            }
            if !ready(0).is_empty() || receiver.has_more() {
                match self.receive(receiver)? {
                    Some(0) => return Ok(()),
                    Some(_) => heard = Instant::now(),
                    None => {}
                }
            }
            if let Some(patience) = patience
                && heard.elapsed() > patience
            {
                return Err(AgentError::Silent(patience));
            }
        }
        Ok(())
    }

    /// Handles input from the client. Returns the size of the last read: 0 if the client is gone, none if
    /// there was no input.
    fn receive(&mut self, receiver: &mut Receiver) -> Result<Option<usize>, AgentError> {
        let (mut came, mut burst) = (None, 0);
        for _ in 0..TAKEN_AT_ONCE {
            match receiver.fill() {
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
            self.look_for_an_answer();
        }
        Ok(came)
    }

    /// Spins for the answer to a single call that the client waits for: a wake-up takes longer than a call of
    /// a microsecond.
    fn look_for_an_answer(&mut self) {
        let fresh = std::mem::take(&mut self.submitted) == 1;
        if fresh && let Some(call) = self.answers.lone() {
            self.waiter.look(&call, &mut self.patience);
        }
    }

    /// Reports the number of workers to the client, and the state of reserved ones.
    fn tell_workers(&mut self) {
        let wanted = self.grid.workers();
        let ready = self.grid.counts().ready as u32;
        if self.ready != Some(ready) {
            self.ready = Some(ready);
            self.answers.tell(&Message::Workers { ready, wanted });
        }
        let Agent { grid, answers, guests, .. } = self;
        guests.retain(|number, (reservation, told)| {
            let number = *number;
            match grid.standing(*reservation) {
                Standing::Starting => true,
                Standing::Ready => {
                    if !std::mem::replace(told, true) {
                        answers.tell(&Message::Reserved { number, lost: None });
                    }
                    true
                }
                Standing::Lost(loss) => {
                    let lost = Some(loss_on_the_wire(&loss));
                    answers.tell(&Message::Reserved { number, lost });
                    grid.release(*reservation);
                    false
                }
                Standing::Released => {
                    answers.tell(&Message::Reserved { number, lost: Some(given_up()) });
                    false
                }
            }
        });
    }

    fn take(&mut self, received: Received<'_>) -> Result<(), LinkError> {
        let Received { message, streams, .. } = received;
        match message {
            Message::HostCall(call) => self.arrived(&call, streams),
            Message::Wide { call, slots, threads } => {
                self.wide.insert(call, (slots, threads));
            }
            Message::Function { function, form, name, sections } => {
                self.learn(function, form, name, &sections, streams);
                self.try_early();
            }
            Message::Module { hash, name, sections } => {
                let content = whole(&sections, streams);
                self.modules.keep(hash, name, &content);
            }
            Message::Blob { blob, sections } => {
                self.blob(blob, &sections, streams)?;
                self.share_arrived()?;
            }
            Message::DropBlob { blob } => {
                if self.blobs.remove(&blob) {
                    self.grid.unshare_named(BlobId(blob));
                }
                self.places.blobs.forget(blob);
                self.answers.tell(&Message::BlobDropped { blob, unread: true });
            }
            Message::Cancel { call } => {
                if let Some(call) = self.answers.call(call) {
                    self.grid.cancel(&call);
                } else if let Some(at) = self.early.iter().position(|early| early.call == call) {
                    self.early.remove(at);
                    self.answers.refuse(call, "it was cancelled");
                }
            }
            Message::Retract { calls } => self.retract(calls),
            Message::KeepResult { call } => self.answers.keep(call),
            Message::FetchResult { call } => self.answers.fetch(call),
            Message::DropResult { call } => self.answers.kept.drop_result(call),
            Message::CallbackReply { call, sections } => {
                let payload = self.places.arguments(&self.grid, None, &sections, streams);
                let answer = payload.map(|(payload, _)| payload).map_err(|error| error.to_string());
                self.waiting.answer(call, answer);
            }
            Message::CallbackFailure { call, message } => {
                self.waiting.answer(call, Err(message.to_owned()));
            }
            Message::Reserve { number } => self.reserve(number),
            Message::Dismiss { number } => {
                if let Some((reservation, _)) = self.guests.remove(&number) {
                    self.grid.release(reservation);
                }
                self.answers.tell(&Message::Reserved { number, lost: Some(given_up()) });
            }
            Message::Prepare(prepare) => {
                prepare.modules.iter().for_each(|module| self.grid.prepare(module));
            }
            Message::Pass { blob, to, secret, addresses } => {
                self.spreading.pass(blob, to, secret, &addresses);
            }
            Message::Expect { blob, secret } => self.spreading.expect(blob, &secret),
            Message::Ping { number } => {
                self.answers.tell(&Message::Pong { number, clock: monotonic_ns() });
                self.answers.settle();
            }
            Message::Pong { .. } => {}
            Message::Hold { bytes } => self.answers.hold(bytes),
            Message::Fetch => self.answers.fetched(),
            Message::Goodbye => self.ended = true,
            other => return Err(LinkError::Unexpected(format!("{:?}", other.kind()))),
        }
        Ok(())
    }

    fn learn(
        &mut self,
        number: u32,
        form: FunctionForm,
        name: &str,
        sections: &[Section<'_>],
        streams: Vec<Stream>,
    ) {
        let body = whole(sections, streams);
        let body = match form {
            FunctionForm::Library => {
                let hash = String::from_utf8_lossy(&body);
                self.modules.find(&hash).map(|file| file.into_os_string().into_encoded_bytes())
            }
            _ => Ok(body),
        };
        let known = match body {
            Ok(body) => Known::Function(self.grid.register(name, form, body)),
            Err(why) => Known::Broken(why),
        };
        self.functions.insert(number, known);
    }

    /// Handles shared data from the client.
    fn blob(
        &mut self,
        blob: u64,
        sections: &[Section<'_>],
        streams: Vec<Stream>,
    ) -> Result<(), LinkError> {
        let placed = streams.iter().all(|stream| matches!(stream, Stream::Placed(..)));
        if !placed || streams.is_empty() {
            let parts = all(sections, streams);
            let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
            let data = SharedData::new(&parts, self.grid.shared_pool())?;
            if self.places.blobs.add(blob, Filling::whole(data)).is_none() {
                // It has arrived on another route meanwhile.
                return Ok(());
            }
        }
        self.places.blobs.complete(blob);
        Ok(())
    }

    /// Shares fully arrived data with the workers.
    fn share_arrived(&mut self) -> Result<(), LinkError> {
        let arrived = self.places.blobs.take_arrived();
        if arrived.is_empty() {
            return Ok(());
        }
        for (blob, filling) in arrived {
            if self.blobs.insert(blob) {
                filling.data().protect()?;
                self.grid.share_as(BlobId(blob), Arc::clone(filling.data()));
            }
        }
        self.try_early();
        Ok(())
    }

    fn arrived(&mut self, message: &HostCall<'_>, streams: Vec<Stream>) {
        let HostCall { call, function, on, idempotent, ref blobs, ref sections } = *message;
        match self.places.arguments(&self.grid, Some(call), sections, streams) {
            Ok((payload, lent)) => {
                let blobs = blobs.clone();
                self.submit(Arrived { call, function, on, idempotent, blobs, payload, lent });
            }
            Err(error) => {
                self.answers.refuse(call, &format!("its arguments cannot be taken: {error}"));
            }
        }
    }

    fn try_early(&mut self) {
        for arrived in std::mem::take(&mut self.early) {
            self.submit(arrived);
        }
    }

    /// Submits a call to the grid, or holds it until everything it needs has arrived.
    fn submit(&mut self, arrived: Arrived) {
        let here = arrived.blobs.iter().all(|blob| self.blobs.contains(blob));
        let function = match self.functions.get(&arrived.function) {
            Some(Known::Function(function)) if here => Arc::clone(function),
            Some(Known::Broken(why)) => {
                let failure = Message::Failure {
                    call: arrived.call,
                    stamps: now(),
                    retained: Vec::new(),
                    error: gridrpc_wire::RemoteError::FunctionNotFound.name(),
                    message: why,
                    trace: "",
                    sections: Vec::new(),
                };
                return self.answers.tell(&failure);
            }
            _ => return self.early.push(arrived),
        };
        let Arrived { call, on, idempotent, blobs, payload, lent, .. } = arrived;
        let on = match on {
            u32::MAX => None,
            number => match self.guests.get(&number) {
                Some((reservation, _)) => Some(*reservation),
                None => return self.answers.refuse(call, "its worker was given up"),
            },
        };
        let wide = (!self.wide.is_empty()).then(|| self.wide.remove(&call)).flatten();
        let (slots, threads) = wide.unwrap_or((1, 0));
        let backwards = Backwards {
            call,
            answers: Arc::clone(&self.answers),
            waiting: Arc::clone(&self.waiting),
        };
        let options = CallOptions {
            idempotent,
            // At most as many as there are: the client counted workers and resources before one was lost.
            cores: slots.min(self.grid.workers()).max(1),
            threads,
            on,
            ..CallOptions::DEFAULT
        };
        let request = Request {
            blobs: blobs.into_iter().map(BlobId).collect(),
            callbacks: Some(Callbacks(Arc::new(backwards))),
            ..Request::new(function, payload, options)
        };
        match self.grid.submit_at_once(request) {
            Ok(taken) => {
                self.submitted += 1;
                let keep = self.answers.kept.take_expected(call);
                self.answers.expect(call, Running { call: taken, lent, keep });
            }
            Err(error) => self.answers.refuse_with(call, &error),
        }
    }

    fn retract(&mut self, calls: Vec<u64>) {
        let mut back = calls;
        back.retain(|id| {
            if let Some(at) = self.early.iter().position(|early| early.call == *id) {
                self.early.remove(at);
                return true;
            }
            let withdrawn = self.answers.call(*id).is_some_and(|call| self.grid.withdraw(&call));
            if withdrawn {
                self.answers.forget(*id);
            }
            withdrawn
        });
        if !back.is_empty() {
            self.answers.tell(&Message::Retracted { calls: back });
        }
    }

    fn reserve(&mut self, number: u32) {
        match self.grid.reserve(1, None, true) {
            Ok(reserved) => {
                self.guests.extend(reserved.first().map(|one| (number, (*one, false))));
            }
            Err(error) => {
                let why = &error.to_string();
                let lost = HostLoss { cause: HostLoss::FAILED, why, ..HostLoss::default() };
                self.answers.tell(&Message::Reserved { number, lost: Some(lost) });
            }
        }
    }
}

fn given_up() -> HostLoss<'static> {
    HostLoss { cause: HostLoss::FAILED, why: "it was given up", ..HostLoss::default() }
}

fn now() -> Stamps {
    let now = monotonic_ns();
    Stamps { received: now, calc_in: now, calc_out: now, ..Stamps::default() }
}
