//! Calls of a client, from their arrival until the grid has them.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Weak};

use gridrpc_client::{Callbacks, FunctionRef, Grid, GridError, Parent, Request, SubmitError};
use gridrpc_core::{BlobId, CallOptions, Owner, Refusal};
use gridrpc_link::payload::Payload;
use gridrpc_link::{LinkError, Stream};
use gridrpc_shm::segment::Pool;
use gridrpc_wire::{
    FunctionForm, HostCall, Message, Order, Place, RemoteError, Section, TraceContext,
};

use crate::answers::{Answers, PoolParent, Running};
use crate::callbacks::{CallbackForwarder, Waiting};
use crate::client_blobs::{BlobNumbers, ClientBlobs};
use crate::client_memory::{ArgumentPlace, MemoryInUse};
use crate::incoming::{Arguments, ArgumentsError, Places, is_dropped, streamed, whole};
use crate::modules::ModuleFiles;
use crate::reservations::Reservations;
use crate::service::{Access, Denied, DetachRequest, DetachedEntry, NamedFunction, Notify, Target};

/// Functions, waiting calls and announcements that a client with limited rights may have.
const MOST_KNOWN: usize = 1 << 16;

/// A function registered by the client.
#[derive(Debug)]
enum RegisteredFunction {
    /// One that the client has sent.
    Function(Arc<FunctionRef>),
    /// One that the daemon offers; each call has its target. Some run on reserved workers only.
    Offered { needs_object: bool },
    /// Calls of it fail: its module is unavailable, or the client may not call it.
    Broken(Denied),
}

/// A call that arrived before something that it needs.
#[derive(Debug)]
struct WaitingCall {
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
    places: Vec<Option<ArgumentPlace>>,
    in_use: Option<Arc<MemoryInUse>>,
    blobs: Vec<u64>,
}

/// The calls of one client, and what they need.
pub(super) struct Calls {
    grid: Arc<Grid>,
    owner: Owner,
    access: Option<Arc<dyn Access>>,
    answers: Arc<Answers>,
    pub(super) waiting: Arc<Waiting>,
    places: Places,
    pub(super) modules: ModuleFiles,
    pub(super) blobs: ClientBlobs,
    pub(super) reservations: Reservations,
    /// Grids of offered functions that report to this client.
    attached: Vec<(Weak<Grid>, Arc<dyn Parent>)>,
    functions: HashMap<u32, RegisteredFunction>,
    /// Expected multi-core calls: number of workers' slots, and of threads.
    multicore: HashMap<u64, (u32, u32)>,
    early: Vec<WaitingCall>,
    /// Calls that wait for a limit of their user, in order.
    held: VecDeque<Ready>,
    /// Calls submitted since the last check for answers.
    pub(super) submitted: usize,
}

impl Calls {
    pub(super) fn new(
        grid: &Arc<Grid>,
        owner: Owner,
        access: Option<Arc<dyn Access>>,
        answers: &Arc<Answers>,
        places: &Places,
        modules: ModuleFiles,
        numbers: Arc<BlobNumbers>,
    ) -> Calls {
        Calls {
            grid: Arc::clone(grid),
            owner,
            answers: Arc::clone(answers),
            waiting: Arc::default(),
            places: places.clone(),
            modules,
            blobs: ClientBlobs::new(grid, access.clone(), places, numbers),
            reservations: Reservations::new(grid, access.clone(), answers),
            access,
            attached: Vec::new(),
            functions: HashMap::new(),
            multicore: HashMap::new(),
            early: Vec::new(),
            held: VecDeque::new(),
            submitted: 0,
        }
    }

    /// Records that a call will take this many workers' places and threads.
    ///
    /// # Errors
    /// When there are too many such calls.
    pub(super) fn announce(
        &mut self,
        call: u64,
        slots: u32,
        threads: u32,
    ) -> Result<(), LinkError> {
        if self.access.is_some() && self.multicore.len() >= MOST_KNOWN {
            return Err(LinkError::Unexpected("too many announced calls".to_owned()));
        }
        self.multicore.insert(call, (slots, threads));
        Ok(())
    }

    /// Records the client's span of a call, which comes next.
    pub(super) fn announce_trace(&self, call: u64, context: TraceContext) {
        if self.access.is_some() {
            self.places.announce_trace(call, context);
        }
    }

    /// Cancels a call.
    pub(super) fn cancel(&mut self, call: u64) {
        if let Some((call, grid)) = self.answers.call(call) {
            grid.cancel(&call);
        } else if let Some(at) = self.early.iter().position(|early| early.call == call) {
            self.early.remove(at);
            self.answers.refuse(call, "it was cancelled");
        } else if self.take_held(call) {
            self.answers.cancelled(call);
        }
    }

    /// Has the daemon keep a call, so that it does not end with its client.
    pub(super) fn detach(&mut self, call: u64) {
        if self.early.iter().any(|early| early.call == call) {
            let denied = not_detached("its function or its shared data has not arrived yet");
            return self.answers.not_detached(call, &denied);
        }
        if let Some(at) = self.held.iter().position(|ready| ready.call == call) {
            return self.detach_held(at);
        }
        // Otherwise its answer is on the way.
        let Some(running) = self.answers.take(call) else { return };
        match self.keep_running(&running) {
            Ok((entry, pool)) => {
                let id = entry.id().to_owned();
                entry.resume(running.left(pool));
                self.answers.detached(call, &id);
            }
            Err(denied) => {
                self.answers.not_detached(call, &denied);
                self.answers.expect(call, running);
            }
        }
    }

    /// Detaches a call that waits for a limit of its user.
    fn detach_held(&mut self, at: usize) {
        let Some(ready) = self.held.remove(at) else { return };
        let Ready { call, target, payload, .. } = &ready;
        let (call, function) = (*call, Arc::clone(&target.function));
        let (idempotent, order) = (target.options.idempotent, payload.order);
        let sections = sections_of(&target.grid, payload, true);
        let entry = sections.and_then(|sections| {
            let function = function.name();
            self.keep(DetachRequest { function, sections, order, idempotent, has_begun: false })
        });
        match entry {
            Ok(entry) => {
                let id = entry.id().to_owned();
                entry.start(ready.target);
                self.answers.detached(call, &id);
            }
            Err(denied) => {
                self.answers.not_detached(call, &denied);
                self.held.insert(at, ready);
            }
        }
    }

    fn keep_running(
        &self,
        running: &Running,
    ) -> Result<(Box<dyn DetachedEntry>, Arc<Pool>), Denied> {
        let Running { call, grid, .. } = running;
        let pool = self.places.pool().ok_or_else(|| not_detached("it has no memory"))?;
        let payload = call.payload().ok_or_else(|| not_detached("it has ended"))?;
        let idempotent = call.is_idempotent();
        let sections = sections_of(grid, &payload, idempotent)?;
        let (function, order) = (call.function().name(), payload.order);
        let entry = DetachRequest { function, sections, order, idempotent, has_begun: true };
        let entry = self.keep(entry)?;
        Ok((entry, pool))
    }

    fn keep(&self, call: DetachRequest<'_>) -> Result<Box<dyn DetachedEntry>, Denied> {
        let refused = || not_detached("only servers that many clients share keep calls");
        self.access.as_ref().ok_or_else(refused)?.keep(call)
    }

    /// Handles the client's reply to a callback.
    pub(super) fn callback_replied(
        &self,
        call: u64,
        sections: &[Section<'_>],
        order: Order,
        streams: Vec<Stream>,
    ) {
        let answer = self.places.answer(&self.grid, sections, order, streams);
        self.waiting.answer(call, answer.map_err(|error| error.to_string()));
    }

    /// Shares data that has arrived, and submits the calls that waited for it.
    ///
    /// # Errors
    /// When the data cannot be shared.
    pub(super) fn share_arrived(&mut self) -> Result<(), LinkError> {
        if self.blobs.share_arrived()? {
            self.try_early();
        }
        Ok(())
    }

    /// Takes a segment that the client announces.
    ///
    /// # Errors
    /// When the client breaks the rules.
    pub(super) fn add_segment(
        &self,
        number: u32,
        len: u64,
        files: Vec<OwnedFd>,
    ) -> Result<(), LinkError> {
        self.places.segments().add(number, len, files)
    }

    /// Forgets a segment of the client, and lets workers do so.
    pub(super) fn drop_segment(&self, number: u32) {
        self.places.segments().remove(number);
        let attached = self.attached.iter().filter_map(|(grid, _)| grid.upgrade());
        attached.for_each(|grid| grid.tell_of_dropped_memory());
        self.grid.tell_of_dropped_memory();
    }

    /// Ends everything that the client has on grids.
    pub(super) fn end(&mut self) {
        self.waiting.give_up();
        self.held.clear();
        for running in self.answers.forget_all() {
            running.record_error("Cancelled");
            running.grid.cancel(&running.call);
        }
        self.places.segments().clear();
        self.grid.tell_of_dropped_memory();
        for (grid, parent) in self.attached.drain(..) {
            if let Some(grid) = grid.upgrade() {
                grid.tell_of_dropped_memory();
                grid.detach(&parent);
            }
        }
        self.reservations.release_all();
        self.blobs.drop_all();
    }

    /// Registers a function that the client names.
    ///
    /// # Errors
    /// When there are too many.
    pub(super) fn learn(
        &mut self,
        number: u32,
        form: FunctionForm,
        name: &str,
        sections: &[Section<'_>],
        streams: Vec<Stream>,
    ) -> Result<(), LinkError> {
        if self.access.is_some() && self.functions.len() >= MOST_KNOWN {
            return Err(LinkError::Unexpected("too many functions".to_owned()));
        }
        let known = self.known(number, form, name, sections, streams);
        self.functions.insert(number, known);
        self.try_early();
        Ok(())
    }

    fn known(
        &self,
        number: u32,
        form: FunctionForm,
        name: &str,
        sections: &[Section<'_>],
        streams: Vec<Stream>,
    ) -> RegisteredFunction {
        let found = match &self.access {
            Some(access) => access.find(form, name),
            None => Ok(NamedFunction::Sent),
        };
        match found {
            Ok(NamedFunction::Sent) => {}
            Ok(NamedFunction::Offered(offered)) => {
                let needs_object = offered.needs_object();
                self.places.offer(number, offered);
                return RegisteredFunction::Offered { needs_object };
            }
            Err(denied) => return RegisteredFunction::Broken(denied),
        }
        let body = whole(sections, streams);
        let body = match form {
            FunctionForm::Library => {
                let hash = String::from_utf8_lossy(&body);
                self.modules.find(&hash).map(|file| file.into_os_string().into_encoded_bytes())
            }
            _ => Ok(body),
        };
        match body {
            Ok(body) => RegisteredFunction::Function(self.grid.register(name, form, body)),
            Err(message) => {
                let error = RemoteError::FunctionNotFound.name().to_owned();
                RegisteredFunction::Broken(Denied { error, message })
            }
        }
    }

    /// Handles a call that has arrived.
    pub(super) fn arrived(&mut self, message: &HostCall<'_>, order: Order, streams: Vec<Stream>) {
        let HostCall { call, function, on, idempotent, ref blobs, ref sections } = *message;
        let is_listed = |section: &Section<'_>| match section.place {
            Place::Blob { blob, .. } => blobs.contains(&blob),
            _ => true,
        };
        if !sections.iter().all(is_listed) {
            return self.answers.refuse(call, "it refers to shared data that it does not list");
        }
        if let (true, Some(access)) = (is_dropped(&streams), &self.access) {
            let denied = self.places.denial_of(message);
            let denied = denied.unwrap_or_else(|| access.exceeds_payload(streamed(sections)));
            return self.answers.deny(call, &denied);
        }
        let is_native = matches!(self.functions.get(&function), Some(RegisteredFunction::Function(known)) if known.is_native());
        let uses_memory = is_native && self.access.is_none();
        match self.places.arguments_of(&self.grid, uses_memory, message, order, streams) {
            Ok(arguments) => {
                let blobs = blobs.clone();
                self.submit(WaitingCall { call, function, on, idempotent, blobs, arguments });
            }
            Err(ArgumentsError::Denied(denied)) => self.answers.deny(call, &denied),
            Err(ArgumentsError::System(error)) => {
                self.answers.refuse(call, &format!("its arguments cannot be taken: {error}"));
            }
        }
    }

    /// Submits calls that have waited for something that has arrived.
    pub(super) fn try_early(&mut self) {
        for arrived in std::mem::take(&mut self.early) {
            self.submit(arrived);
        }
    }

    /// Submits a call to the grid, or holds it until everything it needs has arrived.
    fn submit(&mut self, arrived: WaitingCall) {
        if let Some(denied) = self.blobs.denied(&arrived.blobs) {
            return self.answers.deny(arrived.call, denied);
        }
        if let Err(denied) = self.blobs.find_named(&arrived.blobs) {
            return self.answers.deny(arrived.call, &denied);
        }
        if self.blobs.lacks(&arrived.blobs) {
            return self.answers.tell(&Message::Retracted { calls: vec![arrived.call] });
        }
        let here = self.blobs.has(&arrived.blobs);
        let function = match self.functions.get(&arrived.function) {
            Some(RegisteredFunction::Function(function)) if here => Some(Arc::clone(function)),
            Some(RegisteredFunction::Offered { needs_object: true }) if arrived.on == u32::MAX => {
                return self.answers.refuse(arrived.call, "it is a method, and names no object");
            }
            Some(RegisteredFunction::Offered { .. }) if here => None,
            Some(RegisteredFunction::Broken(denied)) => {
                return self.answers.deny(arrived.call, denied);
            }
            _ if self.access.is_some() && self.early.len() >= MOST_KNOWN => {
                return self.answers.refuse(arrived.call, "too many calls wait for their data");
            }
            _ => return self.early.push(arrived),
        };
        let WaitingCall { call, on, idempotent, blobs, arguments, .. } = arrived;
        let Arguments { payload, places, in_use, target, trace } = arguments;
        let multicore =
            (!self.multicore.is_empty()).then(|| self.multicore.remove(&call)).flatten();
        let target = match (target, function) {
            (Some(target), _) => Ok(target),
            (None, Some(function)) => {
                self.target_of_sent(function, payload.bytes, trace, multicore, on != u32::MAX)
            }
            (None, None) => return self.answers.refuse(call, "its function is not offered"),
        };
        let mut target = match target {
            Ok(target) => target,
            Err(denied) => return self.answers.deny(call, &denied),
        };
        if !Arc::ptr_eq(&target.grid, &self.grid)
            && let Err(error) = self.blobs.copy_to(&target.grid, &blobs)
        {
            return self.answers.refuse(call, &format!("its shared data cannot be kept: {error}"));
        }
        target.options.on = match on {
            u32::MAX => None,
            number => match self.reservations.on(number, &target.grid) {
                Ok(reservation) => Some(reservation),
                Err(why) => return self.answers.refuse(call, &why),
            },
        };
        target.options.idempotent = idempotent;
        let is_reserved = target.options.on.is_some();
        self.held.push_back(Ready { call, target, payload, places, in_use, blobs });
        if self.held.len() == 1 || is_reserved {
            self.start_held();
        }
    }

    /// Submits calls that wait for a limit of their user, in order, up to the first that has to wait on. Calls of
    /// objects do not wait behind it if it waits for a worker: they have theirs.
    pub(super) fn start_held(&mut self) {
        let mut at = 0;
        while let Some(ready) = self.held.get(at) {
            let is_reserved = ready.target.options.on.is_some();
            if at > 0 && !is_reserved {
                at += 1;
                continue;
            }
            if let Some(permit) = &ready.target.permit {
                let waiting: Arc<dyn Notify> = Arc::clone(&self.answers) as _;
                if !permit.try_start(&waiting) {
                    if is_reserved {
                        return;
                    }
                    at += 1;
                    continue;
                }
            }
            if let Some(ready) = self.held.remove(at) {
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
        let Ready { call, target, payload, places, in_use, blobs } = ready;
        self.attach(&target.grid);
        let Target { grid, function, owner, options, permit, .. } = target;
        let backwards = CallbackForwarder {
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
        let is_elsewhere = !Arc::ptr_eq(&grid, &self.grid);
        match grid.submit_at_once(request) {
            Ok(taken) => {
                self.submitted += 1;
                let keep = self.answers.held_results.take_expected(call);
                let running =
                    Running { call: taken, grid, places, in_use, keep, permit, is_elsewhere };
                self.answers.expect(call, running);
            }
            Err(SubmitError::Failed(GridError::Refused(Refusal::NoWorkers(loss))))
                if is_elsewhere =>
            {
                self.answers.lost(call, loss);
            }
            Err(error) => self.answers.refuse_with(call, &error),
        }
    }

    /// Lets a grid report answers to this client.
    fn attach(&mut self, grid: &Arc<Grid>) {
        let is_known = |known: &Weak<Grid>| std::ptr::eq(known.as_ptr(), Arc::as_ptr(grid));
        if Arc::ptr_eq(grid, &self.grid) || self.attached.iter().any(|(known, _)| is_known(known)) {
            return;
        }
        self.attached.retain(|(known, _)| known.strong_count() > 0);
        let parent: Arc<dyn Parent> = Arc::new(PoolParent(Arc::clone(&self.answers)));
        grid.attach(&parent);
        self.attached.push((Arc::downgrade(grid), parent));
    }

    /// Begins a call of a function that the client has sent. `multicore`: the workers' places and the threads that it takes.
    /// `is_reserved`: it runs in a worker that the client has reserved.
    fn target_of_sent(
        &self,
        function: Arc<FunctionRef>,
        bytes: u64,
        trace: Option<TraceContext>,
        multicore: Option<(u32, u32)>,
        is_reserved: bool,
    ) -> Result<Target, Denied> {
        let grid = Arc::clone(&self.grid);
        let (slots, threads) = multicore.unwrap_or((1, 0));
        // At most as many as there are: the client counted workers and resources before one was lost.
        let cores = slots.min(grid.workers()).max(1);
        let mut options = CallOptions { cores, threads, ..CallOptions::DEFAULT };
        let permit = match &self.access {
            None => None,
            Some(access) => {
                let more_workers = if is_reserved { 0 } else { cores };
                Some(access.begin(&function, bytes, trace, more_workers, &mut options)?)
            }
        };
        let uses_memory = self.access.is_none();
        Ok(Target { grid, function, owner: self.owner, options, permit, uses_memory })
    }

    /// Gives back all calls that the grid has not begun.
    pub(super) fn retract_all(&mut self) {
        let early = self.early.iter().map(|early| early.call);
        let held = self.held.iter().map(|held| held.call);
        let calls = early.chain(held).chain(self.answers.unanswered()).collect();
        self.retract(calls);
    }

    /// Gives calls back that the grid has not begun.
    pub(super) fn retract(&mut self, calls: Vec<u64>) {
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
}

fn not_detached(why: &str) -> Denied {
    let error = RemoteError::ArgumentError.name().to_owned();
    Denied { error, message: format!("the call cannot be detached: {why}") }
}

/// Copies of the sections of a call, or of the first one.
fn sections_of(grid: &Grid, payload: &Payload, all: bool) -> Result<Vec<Vec<u8>>, Denied> {
    if payload.order != Order::NATIVE {
        return Err(not_detached("its arguments have another byte order than the server"));
    }
    let most = if all { payload.parts.len() } else { 1 };
    let copies = payload.parts.iter().take(most).map(|part| grid.copy_section(part));
    let copies: io::Result<_> = copies.collect();
    copies.map_err(|error| not_detached(&format!("its arguments cannot be read: {error}")))
}
