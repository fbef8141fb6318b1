//! Service loop for one client, whose calls run on a grid of this process. The grid may have other clients.

use std::collections::{HashMap, HashSet, VecDeque};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use gridrpc_client::{
    Callbacks, Code, FunctionRef, Grid, Parent as _, Request, SharedData, Waiter, loss_on_the_wire,
};
use gridrpc_core::{BlobId, CallOptions, Owner, Reservation, Standing};
use gridrpc_link::payload::{Payload, section_bytes};
use gridrpc_link::{LinkError, Received, Receiver, Stream};
use gridrpc_shm::segment::Lent;
use gridrpc_sys::monotonic_ns;
use gridrpc_sys::spin_wait::SpinWait;
use gridrpc_wire::{
    Compression, FunctionForm, HostCall, HostLoss, Message, Place, RemoteError, Section, Stamps,
};

use crate::answers::{Answers, Running};
use crate::broadcast::Broadcast;
use crate::callbacks::{Backwards, Waiting};
use crate::connection::Connection;
use crate::error::AgentError;
use crate::handshake::is_passing;
use crate::heartbeat::Heartbeat;
use crate::incoming::{Arguments, ArgumentsError, Places, whole};
use crate::modules::ModuleFiles;
use crate::service::{Access, Denied, Found, Notify, Permit, Target};
use crate::shared_data::Filling;

/// A client may be silent for this multiple of the heartbeat: it may be delayed or suspended by its user. If
/// it has ended, the connection ends.
const HANDSHAKE_TIMEOUT: u32 = 10;
/// How many reads from the client, while streams arrive, before the loop checks everything else.
const TAKEN_AT_ONCE: u32 = 16;
/// Bytes between two waits that indicate a fast link; on such a link it spins for more instead of sleeping.
const FAST: usize = 8 << 10;
/// Functions, waiting calls and announcements that a client with limited rights may have.
const MOST_KNOWN: usize = 1 << 16;

/// A function registered by the client.
#[derive(Debug)]
enum Known {
    /// One that the client has sent.
    Function(Arc<FunctionRef>),
    /// One that the daemon offers; each call has its target.
    Offered,
    /// Calls of it fail: its module is unavailable, or the client may not call it.
    Broken(Denied),
}

/// A call that arrived before something that it needs.
#[derive(Debug)]
struct Arrived {
    call: u64,
    function: u32,
    on: u32,
    idempotent: bool,
    blobs: Vec<u64>,
    arguments: Arguments,
}

/// A call that has everything it needs.
#[derive(Debug)]
struct Ready {
    call: u64,
    target: Target,
    payload: Payload,
    lent: Vec<Option<Arc<Lent>>>,
    blobs: Vec<u64>,
}

/// Shared data of the client.
#[derive(Debug)]
struct Blob {
    data: Arc<SharedData>,
    /// Grids of offered functions that have copies.
    copies: Vec<Arc<Grid>>,
    /// Permission to keep it, where that needs one.
    _permit: Option<Box<dyn Permit>>,
}

/// A worker that the client has reserved.
#[derive(Debug)]
struct Reserved {
    /// None until the first call: which grid it belongs to depends on the function.
    reservation: Option<(Arc<Grid>, Reservation)>,
    /// Whether its readiness has been reported.
    is_reported: bool,
    _permit: Option<Box<dyn Permit>>,
}

/// Numbers of shared data that the clients of a grid use. Clients draw them, at random, since they are in pickles; two
/// clients with the same number would read each other's data.
#[derive(Debug, Default)]
pub(super) struct BlobNumbers(Mutex<HashSet<u64>>);

impl BlobNumbers {
    /// Returns whether the number was free.
    fn claim(&self, blob: u64) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(blob)
    }

    fn free(&self, blob: u64) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&blob);
    }
}

/// How a client is served.
pub(super) struct Terms {
    pub(super) owner: Owner,
    /// What the client may do; none: everything.
    pub(super) access: Option<Arc<dyn Access>>,
    /// Whether the client may send functions, modules, and names of modules to import.
    pub(super) takes_code: bool,
    /// How long the client may be silent, and waits for a sign of life; none: for ever.
    pub(super) heartbeat: Option<Duration>,
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
    owner: Owner,
    access: Option<Arc<dyn Access>>,
    takes_code: bool,
    answers: Arc<Answers>,
    waiting: Arc<Waiting>,
    places: Places,
    spreading: Option<Broadcast>,
    modules: ModuleFiles,
    functions: HashMap<u32, Known>,
    blobs: HashMap<u64, Blob>,
    /// Shared data that the client may not keep.
    denied_blobs: HashMap<u64, Denied>,
    numbers: Arc<BlobNumbers>,
    /// Expected multi-core calls: number of workers' slots, and of threads.
    wide: HashMap<u64, (u32, u32)>,
    early: Vec<Arrived>,
    /// Calls that wait for a limit of their user, in order.
    held: VecDeque<Ready>,
    /// Reserved workers by the client's numbers.
    guests: HashMap<u32, Reserved>,
    /// The number of ready workers reported last.
    ready: Option<u32>,
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
    let Terms { spreading, numbers, unwanted, .. } = terms;
    let answers = Arc::clone(&connection.answers);
    let heart = heartbeat.map(|heartbeat| Heartbeat::new(heartbeat, &answers)).transpose();
    answers.up.compress(compression);
    connection.places.belong_to(grid);
    connection.receiver.place_streams(connection.places.placement());
    let mut client = Client {
        grid: Arc::clone(grid),
        owner,
        access,
        takes_code,
        answers,
        waiting: Arc::default(),
        places: connection.places.clone(),
        spreading,
        modules,
        functions: HashMap::new(),
        blobs: HashMap::new(),
        denied_blobs: HashMap::new(),
        numbers,
        wide: HashMap::new(),
        early: Vec::new(),
        held: VecDeque::new(),
        guests: HashMap::new(),
        ready: None,
        unwanted,
        submitted: 0,
        waiter: grid.waiter(),
        patience: SpinWait::with_sleepers(),
        streaming: SpinWait::default(),
        ended: false,
    };
    let patience = heartbeat.map(|heartbeat| heartbeat * HANDSHAKE_TIMEOUT);
    let served = heart
        .map_err(|error| AgentError::System { what: "starting a thread", error })
        .and_then(|_beating| client.serve(&mut connection, patience));
    // Also if it was not served: it is an owner of the grid.
    client.leave();
    served
}

impl Client {
    fn serve(
        &mut self,
        connection: &mut Connection,
        patience: Option<Duration>,
    ) -> Result<(), AgentError> {
        let mut heard = Instant::now();
        // Messages that arrived together with the request to serve.
        connection.receiver.drain(|received| self.take(received))?;
        while !self.ended && !self.unwanted.load(Ordering::Acquire) {
            if self.answers.take_changed() {
                self.tell_workers();
            }
            if self.answers.take_freed() {
                self.start_held();
            }
            self.share_arrived()?;
            let due = self.spreading.as_ref().and_then(Broadcast::look);
            self.answers.settle();
            let silent = patience.map(|patience| {
                patience.saturating_sub(heard.elapsed()) + Duration::from_millis(1)
            });
            let due = due.map(|due| due.saturating_duration_since(Instant::now()));
            if connection.wait(silent.into_iter().chain(due).min()) {
                match self.receive(&mut connection.receiver)? {
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

    /// Ends everything that the client has on the grid.
    fn leave(&mut self) {
        self.waiting.give_up();
        self.held.clear();
        for running in self.answers.forget_all() {
            running.grid.cancel(&running.call);
        }
        for (_, reserved) in self.guests.drain() {
            release(reserved.reservation);
        }
        for (number, blob) in self.blobs.drain() {
            drop_blob(&self.grid, number, blob);
            self.numbers.free(number);
        }
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
        if fresh && let Some((call, grid)) = self.answers.lone() {
            if Arc::ptr_eq(&grid, &self.grid) {
                self.waiter.look(&call, &mut self.patience);
            } else {
                grid.waiter().look(&call, &mut self.patience);
            }
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
        let Client { answers, guests, .. } = self;
        guests.retain(|number, reserved| {
            let number = *number;
            let Some((grid, reservation)) = &reserved.reservation else {
                if !std::mem::replace(&mut reserved.is_reported, true) {
                    answers.tell(&Message::Reserved { number, lost: None });
                }
                return true;
            };
            match grid.standing(*reservation) {
                Standing::Starting => true,
                Standing::Ready => {
                    if !std::mem::replace(&mut reserved.is_reported, true) {
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
                if self.access.is_some() && self.wide.len() >= MOST_KNOWN {
                    return Err(LinkError::Unexpected("too many announced calls".to_owned()));
                }
                self.wide.insert(call, (slots, threads));
            }
            Message::Function { function, form, name, sections } => {
                if self.access.is_some() && self.functions.len() >= MOST_KNOWN {
                    return Err(LinkError::Unexpected("too many functions".to_owned()));
                }
                self.learn(function, form, name, &sections, streams);
                self.try_early();
            }
            Message::Module { .. } | Message::Prepare(_) if !self.takes_code => {}
            Message::Module { hash, name, sections } => {
                let content = whole(&sections, streams);
                self.modules.keep(hash, name, &content);
            }
            Message::Blob { blob, sections } => {
                self.blob(blob, &sections, streams)?;
                self.share_arrived()?;
            }
            Message::DropBlob { blob } => {
                self.denied_blobs.remove(&blob);
                if let Some(dropped) = self.blobs.remove(&blob) {
                    drop_blob(&self.grid, blob, dropped);
                    self.numbers.free(blob);
                }
                self.places.blobs.forget(blob);
                self.answers.tell(&Message::BlobDropped { blob, unread: true });
            }
            Message::Cancel { call } => {
                if let Some((call, grid)) = self.answers.call(call) {
                    grid.cancel(&call);
                } else if let Some(at) = self.early.iter().position(|early| early.call == call) {
                    self.early.remove(at);
                    self.answers.refuse(call, "it was cancelled");
                } else if self.take_held(call) {
                    self.answers.cancelled(call);
                }
            }
            Message::Retract { calls } => self.retract(calls),
            Message::KeepResult { call } => self.answers.keep(call),
            Message::FetchResult { call } => self.answers.fetch(call),
            Message::DropResult { call } => self.answers.kept.drop_result(call),
            Message::CallbackReply { call, sections } => {
                let answer = self.places.answer(&self.grid, &sections, streams);
                self.waiting.answer(call, answer.map_err(|error| error.to_string()));
            }
            Message::CallbackFailure { call, message } => {
                self.waiting.answer(call, Err(message.to_owned()));
            }
            Message::Reserve { number } => self.reserve(number),
            Message::Dismiss { number } => {
                if let Some(reserved) = self.guests.remove(&number) {
                    release(reserved.reservation);
                }
                self.answers.tell(&Message::Reserved { number, lost: Some(given_up()) });
            }
            Message::Prepare(prepare) => {
                prepare.modules.iter().for_each(|module| self.grid.prepare(module));
            }
            Message::Pass { blob, to, secret, addresses } => match &self.spreading {
                Some(spreading) => spreading.pass(blob, to, secret, &addresses),
                None => self.answers.tell(&Message::NotPassed { blob, to }),
            },
            Message::Expect { blob, secret } => match &mut self.spreading {
                Some(spreading) => spreading.expect(blob, &secret),
                None => self.answers.tell(&Message::Missing { blob }),
            },
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
        let found = match &self.access {
            Some(access) => access.find(form, name),
            None => Ok(Found::Sent),
        };
        match found {
            Ok(Found::Sent) => {}
            Ok(Found::Offered(offered)) => {
                self.places.offer(number, offered);
                self.functions.insert(number, Known::Offered);
                return;
            }
            Err(denied) => {
                self.functions.insert(number, Known::Broken(denied));
                return;
            }
        }
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
            Err(message) => {
                let error = RemoteError::FunctionNotFound.name().to_owned();
                Known::Broken(Denied { error, message })
            }
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
            let parts = section_bytes(sections, streams);
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
            if !self.blobs.contains_key(&blob) {
                let bytes = filling.lengths().iter().map(|len| *len as u64).sum();
                let permit = match self.access.as_ref().map(|access| access.share(bytes)) {
                    Some(Err(denied)) => {
                        self.places.blobs.forget(blob);
                        self.denied_blobs.insert(blob, denied);
                        continue;
                    }
                    permit => permit.and_then(Result::ok),
                };
                if !self.numbers.claim(blob) {
                    let what = format!("shared data {blob}, a number that another client uses");
                    return Err(LinkError::Unexpected(what));
                }
                filling.data().protect()?;
                let data = Arc::clone(filling.data());
                self.blobs.insert(blob, Blob { data, copies: Vec::new(), _permit: permit });
                self.grid.share_as(BlobId(blob), Arc::clone(filling.data()));
            }
        }
        self.try_early();
        Ok(())
    }

    fn arrived(&mut self, message: &HostCall<'_>, streams: Vec<Stream>) {
        let HostCall { call, function, on, idempotent, ref blobs, ref sections } = *message;
        let is_listed = |section: &Section<'_>| match section.place {
            Place::Blob { blob, .. } => blobs.contains(&blob),
            _ => true,
        };
        if !sections.iter().all(is_listed) {
            return self.answers.refuse(call, "it refers to shared data that it does not list");
        }
        match self.places.arguments_of(&self.grid, message, streams) {
            Ok(arguments) => {
                let blobs = blobs.clone();
                self.submit(Arrived { call, function, on, idempotent, blobs, arguments });
            }
            Err(ArgumentsError::Denied(denied)) => self.answers.deny(call, &denied),
            Err(ArgumentsError::System(error)) => {
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
        let denied = arrived.blobs.iter().find_map(|blob| self.denied_blobs.get(blob));
        if let Some(denied) = denied {
            return self.answers.deny(arrived.call, denied);
        }
        let here = arrived.blobs.iter().all(|blob| self.blobs.contains_key(blob));
        let function = match self.functions.get(&arrived.function) {
            Some(Known::Function(function)) if here => Some(Arc::clone(function)),
            Some(Known::Offered) if here => None,
            Some(Known::Broken(denied)) => return self.answers.deny(arrived.call, denied),
            _ if self.access.is_some() && self.early.len() >= MOST_KNOWN => {
                return self.answers.refuse(arrived.call, "too many calls wait for their data");
            }
            _ => return self.early.push(arrived),
        };
        let Arrived { call, on, idempotent, blobs, arguments, .. } = arrived;
        let Arguments { payload, lent, target } = arguments;
        let wide = (!self.wide.is_empty()).then(|| self.wide.remove(&call)).flatten();
        let target = match (target, function) {
            (Some(target), _) => Ok(target),
            (None, Some(function)) => self.target_of_sent(function, payload.bytes, wide),
            (None, None) => return self.answers.refuse(call, "its function is not offered"),
        };
        let mut target = match target {
            Ok(target) => target,
            Err(denied) => return self.answers.deny(call, &denied),
        };
        if !Arc::ptr_eq(&target.grid, &self.grid)
            && let Err(error) = self.copy_blobs(&blobs, &target.grid)
        {
            return self.answers.refuse(call, &format!("its shared data cannot be kept: {error}"));
        }
        target.options.on = match on {
            u32::MAX => None,
            number => match self.reserved_on(number, &target.grid) {
                Ok(reservation) => Some(reservation),
                Err(why) => return self.answers.refuse(call, &why),
            },
        };
        target.options.idempotent = idempotent;
        self.held.push_back(Ready { call, target, payload, lent, blobs });
        if self.held.len() == 1 {
            self.start_held();
        }
    }

    /// Submits calls that wait for a limit of their user, in order, up to the first that has to wait on.
    fn start_held(&mut self) {
        while let Some(ready) = self.held.front() {
            if let Some(permit) = &ready.target.permit {
                let waiting: Arc<dyn Notify> = Arc::clone(&self.answers) as _;
                if !permit.try_start(&waiting) {
                    return;
                }
            }
            if let Some(ready) = self.held.pop_front() {
                self.start(ready);
            }
        }
    }

    /// Removes a call that waits for a limit of its user. Returns whether it did.
    fn take_held(&mut self, call: u64) -> bool {
        let at = self.held.iter().position(|ready| ready.call == call);
        at.and_then(|at| self.held.remove(at)).is_some()
    }

    fn start(&mut self, ready: Ready) {
        let Ready { call, target, payload, lent, blobs } = ready;
        let Target { grid, function, owner, options, permit } = target;
        let backwards = Backwards {
            call,
            answers: Arc::clone(&self.answers),
            waiting: Arc::clone(&self.waiting),
        };
        let request = Request {
            owner,
            blobs: blobs.into_iter().map(BlobId).collect(),
            callbacks: Some(Callbacks(Arc::new(backwards))),
            ..Request::new(function, payload, options)
        };
        match grid.submit_at_once(request) {
            Ok(taken) => {
                self.submitted += 1;
                let keep = self.answers.kept.take_expected(call);
                self.answers.expect(call, Running { call: taken, grid, lent, keep, permit });
            }
            Err(error) => self.answers.refuse_with(call, &error),
        }
    }

    /// Begins a call of a function that the client has sent. `wide`: the workers' places and the threads that it takes.
    fn target_of_sent(
        &self,
        function: Arc<FunctionRef>,
        bytes: u64,
        wide: Option<(u32, u32)>,
    ) -> Result<Target, Denied> {
        let grid = Arc::clone(&self.grid);
        let (slots, threads) = wide.unwrap_or((1, 0));
        // At most as many as there are: the client counted workers and resources before one was lost.
        let cores = slots.min(grid.workers()).max(1);
        let mut options = CallOptions { cores, threads, ..CallOptions::DEFAULT };
        let permit = match &self.access {
            None => None,
            Some(access) => Some(access.begin(&function, bytes, &mut options)?),
        };
        Ok(Target { grid, function, owner: self.owner, options, permit })
    }

    /// Copies shared data to the grid of an offered function, once for each grid.
    fn copy_blobs(&mut self, blobs: &[u64], grid: &Arc<Grid>) -> io::Result<()> {
        for number in blobs {
            let Some(blob) = self.blobs.get_mut(number) else { continue };
            if blob.copies.iter().any(|other| Arc::ptr_eq(other, grid)) {
                continue;
            }
            let parts: Vec<&[u8]> =
                (0..blob.data.parts()).map(|part| blob.data.part(part)).collect();
            let copy = SharedData::new(&parts, grid.shared_pool())?;
            grid.share_as(BlobId(*number), Arc::new(copy));
            blob.copies.push(Arc::clone(grid));
        }
        Ok(())
    }

    /// The client's reserved worker, on the grid of the function that it calls there.
    fn reserved_on(&mut self, number: u32, grid: &Arc<Grid>) -> Result<Reservation, String> {
        let reserved = self.guests.get_mut(&number).ok_or("its worker was given up")?;
        let (on, reservation) = match &mut reserved.reservation {
            Some(known) => known,
            none => none.insert(reserve_on(grid)?),
        };
        if Arc::ptr_eq(on, grid) {
            Ok(*reservation)
        } else {
            Err("its worker runs functions of another pool".to_owned())
        }
    }

    fn retract(&mut self, calls: Vec<u64>) {
        let mut back = calls;
        back.retain(|id| {
            if let Some(at) = self.early.iter().position(|early| early.call == *id) {
                self.early.remove(at);
                return true;
            }
            if self.take_held(*id) {
                return true;
            }
            let call = self.answers.call(*id);
            let withdrawn = call.is_some_and(|(call, grid)| grid.withdraw(&call));
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
        if self.access.is_some() && self.guests.contains_key(&number) {
            return;
        }
        let permit = self.access.as_ref().map(|access| access.reserve()).transpose();
        let permit = permit.map_err(|denied| denied.message);
        let reserved = permit.and_then(|permit| {
            let reservation = match permit {
                Some(_) => None,
                None => Some(reserve_on(&self.grid)?),
            };
            Ok(Reserved { reservation, is_reported: false, _permit: permit })
        });
        match reserved {
            Ok(reserved) => {
                self.guests.insert(number, reserved);
            }
            Err(why) => {
                let why = &why;
                let lost = HostLoss { cause: HostLoss::FAILED, why, ..HostLoss::default() };
                self.answers.tell(&Message::Reserved { number, lost: Some(lost) });
            }
        }
    }
}

/// Reserves a worker of a grid.
fn reserve_on(grid: &Arc<Grid>) -> Result<(Arc<Grid>, Reservation), String> {
    let reserved = grid.reserve(1, None, Code::Python).map_err(|error| error.to_string())?;
    let one = reserved.first().ok_or("no worker can be reserved")?;
    Ok((Arc::clone(grid), *one))
}

fn release(reservation: Option<(Arc<Grid>, Reservation)>) {
    if let Some((grid, reservation)) = reservation {
        grid.release(reservation);
    }
}

/// Ends the sharing of data, with its copies.
fn drop_blob(grid: &Grid, number: u64, blob: Blob) {
    grid.unshare_named(BlobId(number));
    for grid in blob.copies {
        grid.unshare_named(BlobId(number));
    }
}

fn given_up() -> HostLoss<'static> {
    HostLoss { cause: HostLoss::FAILED, why: "it was given up", ..HostLoss::default() }
}

/// The stamps of something that has taken no time.
pub(super) fn now() -> Stamps {
    let now = monotonic_ns();
    Stamps { received: now, calc_in: now, calc_out: now, ..Stamps::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_of_shared_data_belongs_to_one_client_at_a_time() {
        let numbers = BlobNumbers::default();
        assert!(numbers.claim(7));
        assert!(!numbers.claim(7));
        assert!(numbers.claim(8));
        numbers.free(7);
        assert!(numbers.claim(7));
    }
}
