//! Worker's connection to its client: calls in, answers out, one at a time.

mod inbox;

use std::collections::HashSet;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use gridrpc_link::buffers::Source;
use gridrpc_link::payload::{Incoming, Outgoing, Payload, PayloadBuilder};
use gridrpc_link::{LinkError, Received, Receiver, Sender, Socket};
use gridrpc_shm::lendings::Lendings;
use gridrpc_shm::outbox::Outbox;
use gridrpc_shm::outboxes::{BoxMemory, partial_memory};
use gridrpc_shm::partial::Items;
use gridrpc_shm::progress::{self, Side};
use gridrpc_shm::segment::{LOOK_EVERY, Pool, PooledSegment};
use gridrpc_sys::spin_wait::SpinWait;
use gridrpc_sys::{Mapping, monotonic_ns};
use gridrpc_transport::Unix;
use gridrpc_wire::{Hello, Message, Stamps, VERSION, Welcome};
use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit};

use crate::debug;
use crate::threads::Threads;
use inbox::{Inbox, unexpected, unexpected_end};

pub use inbox::{ArgumentOrder, CallbackAnswer, Job, KnownFunction};

/// Next step of a worker.
#[derive(Debug)]
pub enum NextStep {
    /// Run a call.
    Run(Job),
    /// Release the objects made of these shared data; the client waits for the memory.
    LetGo(Vec<u64>),
    /// The client has ended, or wants this worker to end.
    End,
}

/// Outcome of a job.
#[derive(Debug)]
pub enum Answer<'a> {
    /// The function has returned.
    Returned(Payload),
    /// The function has raised an error.
    Raised {
        /// Type of the error.
        error: &'a str,
        /// Its message.
        message: &'a str,
        /// Where it was raised, in readable form.
        trace: &'a str,
        /// The pickled error, if it can be pickled.
        payload: Payload,
    },
}

/// Marks the entry into functions; see [`WorkerLink::enter`].
#[derive(Debug)]
pub struct EntryMark {
    progress: Arc<Mapping>,
    worker: u32,
}

impl EntryMark {
    /// Records that the function of the running call is about to be entered.
    #[inline]
    pub fn enter(&self) {
        progress::enter(&self.progress, self.worker);
    }
}

/// The connection.
#[derive(Debug)]
pub struct WorkerLink {
    receiver: Receiver,
    spin_wait: SpinWait,
    sender: Sender,
    worker: u32,
    progress: Arc<Mapping>,
    inbox: Inbox,
    /// Our own segments for results.
    pool: Arc<Pool>,
    /// Work arrays. No result lies where one was: that may be data of another user's call.
    work: Arc<Pool>,
    threshold: usize,
    announced: HashSet<u32>,
    /// End times of the first and the last call whose answers are held back, ns.
    held: Option<(u64, u64)>,
    /// Outbox where the client finds held-back answers, and memory for the results of a call's items: the file, and
    /// the memory once there was such a call.
    outbox: Outbox<BoxMemory>,
    boxes: OwnedFd,
    partial: Option<Option<Arc<Mapping>>>,
    /// Calls started since the last wait.
    streak: u32,
    /// Whether it wakes up periodically to free unused memory.
    wakes: bool,
    /// Threads of numerical libraries.
    threads: Threads,
}

/// Maximum length of a payload, bytes. The address space sets the real limit.
const MAX_PAYLOAD: u64 = 1 << 40;
/// Free shared memory kept for later results, bytes.
const KEEP_FREE: u64 = 256 << 20;
/// Held-back answers are sent at this size, bytes, or when this time has passed since the first one, ns, so that the
/// client has them before the worker runs out of work.
const HELD_BACK: usize = 48 << 10;
const HELD_FOR: u64 = 200_000;
/// After this many calls without a wait, the worker waits this long for more, ns, before it sends answers.
const STREAK: u32 = 8;
const A_MOMENT: u64 = 8_000;

impl WorkerLink {
    /// Performs the handshake with the client. `language`: the language of this worker.
    ///
    /// # Errors
    /// When the client does not speak this version, or the connection fails.
    pub fn open(socket: OwnedFd, language: &str) -> Result<WorkerLink, LinkError> {
        let socket: Socket = Arc::new(Unix(socket));
        let mut receiver = Receiver::new(Arc::clone(&socket), MAX_PAYLOAD);
        let mut sender = Sender::new(socket);
        let mut hello = None;
        while hello.is_none() {
            if fill(&mut receiver)? == 0 {
                return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
            }
            receiver.drain_one(&mut |received: Received<'_>| -> Result<(), LinkError> {
                match received.message {
                    Message::Hello(message) => hello = Some((message, received.descriptors)),
                    other => return Err(unexpected(&other)),
                }
                Ok(())
            })?;
        }
        let Some((hello, descriptors)) = hello else { return Err(unexpected_end()) };
        let mut descriptors = descriptors.into_iter();
        let Hello { min_version, max_version, shared_memory, worker, shared_threshold, .. } = hello;
        if !(min_version..=max_version).contains(&VERSION) {
            return Err(LinkError::Unexpected(format!(
                "a client that speaks versions {min_version} to {max_version}, not {VERSION}"
            )));
        }
        if !shared_memory {
            return Err(LinkError::Unexpected("a client that shares no memory".into()));
        }
        let mut next = || descriptors.next().ok_or_else(unexpected_end);
        let (file, boxes) = (next()?, next()?);
        let len = nix::sys::stat::fstat(&file).map_err(io::Error::from)?.st_size;
        let progress = Arc::new(Mapping::new(file.as_fd(), len as usize, true)?);
        let outbox = Outbox::new(BoxMemory::open(&boxes, worker)?);
        sender.push(&Message::Welcome(Welcome {
            version: VERSION,
            pid: std::process::id(),
            clock: monotonic_ns(),
            language,
            host: &gridrpc_sys::host_name(),
            boot: &gridrpc_sys::boot_id(),
        }))?;
        sender.flush()?;
        debug::attend(worker);
        let pool = Pool::for_one_reader(KEEP_FREE);
        // Functions may create arrays that results refer to.
        gridrpc_shm::announce_to(&pool);
        let inbox = Inbox::new(Lendings::new(&progress, worker));
        Ok(WorkerLink {
            receiver,
            spin_wait: SpinWait::default(),
            sender,
            worker,
            progress,
            inbox,
            pool,
            work: Pool::for_one_reader(KEEP_FREE),
            threshold: usize::try_from(shared_threshold).unwrap_or(usize::MAX),
            announced: HashSet::new(),
            held: None,
            outbox,
            boxes,
            partial: None,
            streak: 0,
            wakes: false,
            threads: Threads::default(),
        })
    }

    /// The worker's number within the grid.
    #[must_use]
    pub fn worker(&self) -> u32 {
        self.worker
    }

    /// Returns the next call, if one is available and the answers given so far may wait for its own. Sends nothing
    /// and never blocks; use [`WorkerLink::next_turn`] when there is none.
    ///
    /// # Errors
    /// When the client breaks the protocol.
    pub fn job_at_hand(&mut self) -> Result<Option<Job>, LinkError> {
        while !self.has_to_send()
            && let Some((job, batch)) = self.next_at_hand()?
        {
            if !batch {
                // Answers have to be sent before it starts.
                self.inbox.jobs.push_front((job, batch));
                break;
            }
            if let Some(job) = self.begin(job) {
                return Ok(Some(job));
            }
        }
        Ok(None)
    }

    /// Sends the answers given so far, unless more microsecond calls are available, and waits for the next step.
    ///
    /// # Errors
    /// When the client breaks the protocol or the connection fails.
    pub fn next_turn(&mut self) -> Result<NextStep, LinkError> {
        loop {
            if let Some((job, batch)) = self.next_at_hand()? {
                // A job that may take long must not delay answers.
                if !batch || self.has_to_send() {
                    self.flush()?;
                }
                if let Some(job) = self.begin(job) {
                    return Ok(NextStep::Run(job));
                }
                // More may be available: do not wait until those have been handled.
                continue;
            }
            if self.more_is_likely() {
                // Otherwise it is the end of the stream, or an error, which is handled below.
                if matches!(fill(&mut self.receiver), Ok(1..)) {
                    continue;
                }
            }
            if !self.inbox.dropped.is_empty() {
                return Ok(NextStep::LetGo(self.take_dropped()));
            }
            self.flush()?;
            self.streak = 0;
            if self.inbox.ended || self.wait_and_fill()? == 0 {
                return Ok(NextStep::End);
            }
        }
    }

    /// During a stream of calls, waits a moment for the next ones before answers are sent, which takes longer.
    /// Returns whether some have arrived.
    fn more_is_likely(&mut self) -> bool {
        if self.streak < STREAK || self.held.is_none() || self.inbox.ended {
            return false;
        }
        let client = progress::meet(&self.progress, self.worker, Side::Worker, false);
        if client.is_some_and(|client| client.is_here) {
            return false;
        }
        let until = monotonic_ns() + A_MOMENT;
        while monotonic_ns() < until && !self.has_to_send() {
            if self.receiver.is_readable() {
                return true;
            }
        }
        false
    }

    /// Whether unsent messages have to go before another call starts: answers that have been held back for long, or
    /// that the client would not find if that call took long or killed this process.
    fn has_to_send(&self) -> bool {
        if self.held.is_none() {
            return false;
        }
        let fits = |waiting: &[u8]| waiting.len() <= HELD_BACK && self.outbox.holds(waiting.len());
        !self.sender.plain().is_some_and(fits)
            || self.held.is_some_and(|(first, last)| last.saturating_sub(first) > HELD_FOR)
    }

    /// Makes unsent messages visible to the client, before anything that may take long.
    fn lay_out(&mut self) {
        if let Some(waiting) = self.sender.plain() {
            let new = waiting.get(self.outbox.filled()..).unwrap_or_default();
            if self.outbox.holds(waiting.len()) {
                self.outbox.put(self.sender.position(), new);
            }
        }
    }

    /// Starts a call, unless the client has taken it back.
    fn begin(&mut self, job: Job) -> Option<Job> {
        self.lay_out();
        let cancelled = self.inbox.unwanted.remove(&job.call);
        if progress::begin(&self.progress, self.worker) {
            if job.threads != self.threads.number() {
                self.threads.use_in_libraries(job.threads);
            }
            self.streak = self.streak.saturating_add(1);
            self.inbox.current = Some(job.call);
            self.inbox.cancelled = cancelled;
            return Some(job);
        }
        // Its arguments are lent by another process.
        for section in job.sections {
            if let Incoming::Shared(stretch) = section {
                stretch.forget();
            }
        }
        None
    }

    /// Reads once; spins for a moment before it sleeps. Frees unused memory while it sleeps.
    fn wait_and_fill(&mut self) -> Result<usize, LinkError> {
        let WorkerLink { spin_wait, receiver, progress, worker, .. } = self;
        let begin = monotonic_ns();
        let client = progress::meet(progress, *worker, Side::Worker, false);
        spin_wait.set_yields(client.is_some_and(|client| client.passes_on));
        let is_there = !client.is_some_and(|client| client.is_here)
            && spin_wait.look(|| receiver.is_readable());
        let has_memory = self.pool.has_any() || self.work.has_any();
        if has_memory != self.wakes {
            let longest = if has_memory { LOOK_EVERY } else { Duration::ZERO };
            gridrpc_sys::wait_at_most(self.receiver.socket(), longest)?;
            self.wakes = has_memory;
        }
        loop {
            match fill_in_time(&mut self.receiver) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.give_up_old()?,
                filled => {
                    if !is_there {
                        self.spin_wait.slept(monotonic_ns() - begin);
                    }
                    return Ok(filled?);
                }
            }
        }
    }

    /// Frees memory that has not been used for some time.
    fn give_up_old(&mut self) -> Result<(), LinkError> {
        self.inbox.lendings.end_marked();
        self.pool.give_up_old();
        self.work.give_up_old();
        // No other process has these.
        let _ = self.work.gone();
        self.push_gone()?;
        self.send()?;
        Ok(())
    }

    /// Tells the client which segments it can unmap.
    fn push_gone(&mut self) -> Result<(), LinkError> {
        for segment in self.pool.gone() {
            if self.announced.remove(&segment) {
                self.sender.push(&Message::DropSegment { segment })?;
            }
        }
        Ok(())
    }

    /// The next call that has been received in full, and whether its answer may wait for others.
    fn next_at_hand(&mut self) -> Result<Option<(Job, bool)>, LinkError> {
        let inbox = &mut self.inbox;
        while inbox.jobs.is_empty()
            && self.receiver.drain_one(&mut |received| inbox.take(received))?
        {}
        Ok(inbox.jobs.pop_front())
    }

    /// Handles all messages that have been received.
    fn take_all(&mut self) -> Result<(), LinkError> {
        let inbox = &mut self.inbox;
        self.receiver.drain(|received| inbox.take(received))
    }

    /// The socket for incoming messages, which [`WorkerLink::is_cancelled`] checks.
    pub(crate) fn socket(&self) -> BorrowedFd<'_> {
        self.receiver.socket()
    }

    /// Whether the running call has been cancelled, so that it may return early.
    pub fn is_cancelled(&mut self) -> bool {
        if self.receiver.is_readable() && !self.inbox.cancelled {
            match fill(&mut self.receiver) {
                Ok(0) | Err(_) => self.inbox.cancelled = true,
                Ok(_) => self.inbox.cancelled |= self.take_all().is_err(),
            }
        }
        self.inbox.cancelled
    }

    /// Makes the client run callback number `index` of the running call, and waits for its answer.
    ///
    /// # Errors
    /// When the client breaks the protocol or the connection fails.
    pub fn call_back(
        &mut self,
        index: u16,
        payload: &Payload,
    ) -> Result<CallbackAnswer, LinkError> {
        let call = self.inbox.current.ok_or_else(unexpected_end)?;
        payload.announce(&mut self.sender, |segment| self.announced.insert(segment))?;
        let sections = payload.sections();
        self.sender.push(&Message::Callback { call, index, sections })?;
        payload.push_streams(&mut self.sender)?;
        payload.parts.iter().for_each(|part| self.inbox.lend(part));
        self.send()?;
        self.inbox.callback = None;
        loop {
            self.take_all()?;
            if let Some(answer) = self.inbox.callback.take() {
                return Ok(answer);
            }
            if self.inbox.ended || fill(&mut self.receiver)? == 0 {
                return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
            }
        }
    }

    /// The parts of shared data.
    #[must_use]
    pub fn blob(&self, blob: u64) -> Option<Vec<Incoming>> {
        self.inbox.blobs.parts(blob).map(<[Incoming]>::to_vec)
    }

    /// Shared data dropped since the last call: release the objects made of it.
    #[must_use]
    pub fn take_dropped(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.inbox.dropped)
    }

    /// Records that the function of the running call is about to be entered: if this process is lost from now on,
    /// that call may have run.
    pub fn enter(&self) {
        progress::enter(&self.progress, self.worker);
    }

    /// The entrance, independent of the connection.
    #[must_use]
    pub fn entrance(&self) -> EntryMark {
        EntryMark { progress: Arc::clone(&self.progress), worker: self.worker }
    }

    /// The items of the running call, which has many. Replaces [`WorkerLink::enter`].
    pub fn items(&mut self) -> Items {
        let WorkerLink { partial, boxes, worker, progress, inbox, .. } = self;
        let memory = partial.get_or_insert_with(|| partial_memory(boxes, *worker).map(Arc::new));
        let call = inbox.current.unwrap_or(u64::MAX);
        Items::open(memory.clone(), Some((Arc::clone(progress), *worker)), call)
    }

    /// A builder for answers.
    #[must_use]
    pub fn payload(&self) -> PayloadBuilder<'_> {
        PayloadBuilder::new(&self.pool, true, self.threshold).lending(&self.inbox.lendings)
    }

    /// Memory for a work array of `len` bytes, with pages of an earlier call if there are any. Returns `None` if it is
    /// too small or too large to be kept, or there is none, or this worker has a limit that does not count shared
    /// memory: new memory has to do.
    pub(crate) fn take_work(&self, len: usize) -> Option<PooledSegment> {
        let is_kept = len >= self.threshold && len as u64 <= KEEP_FREE;
        if !is_kept || !matches!(getrlimit(Resource::RLIMIT_DATA), Ok((RLIM_INFINITY, _))) {
            return None;
        }
        let lent = self.work.take(len as u64).ok()?;
        lent.make_ready(len as u64);
        // The function makes the rest of the pages.
        lent.is_written(len as u64);
        Some(lent)
    }

    /// Answers a call. [`WorkerLink::next_turn`] sends the answer. Sections that the caller still holds are reported
    /// as retained.
    ///
    /// # Errors
    /// Never, as long as the payload was put together with [`WorkerLink::payload`].
    pub fn answer(
        &mut self,
        call: u64,
        stamps: Stamps,
        sections: Vec<Incoming>,
        answer: Answer<'_>,
    ) -> Result<(), LinkError> {
        let mut retained = Vec::new();
        for section in sections {
            match section {
                Incoming::Shared(stretch) if stretch.is_held() => retained.extend(stretch.lease()),
                Incoming::Shared(stretch) => stretch.forget(),
                Incoming::Bytes(buffer) => self.receiver.recycle(buffer),
                _ => {}
            }
        }
        let first = self.held.map_or(stamps.calc_out, |(first, _)| first);
        self.held = Some((first, stamps.calc_out));
        self.push_releases()?;
        let (Answer::Returned(payload) | Answer::Raised { payload, .. }) = &answer;
        self.push_gone()?;
        payload.announce(&mut self.sender, |segment| self.announced.insert(segment))?;
        let sections = payload.sections();
        let message = match &answer {
            Answer::Returned(_) => Message::Reply { call, stamps, retained, sections },
            Answer::Raised { error, message, trace, .. } => {
                Message::Failure { call, stamps, retained, error, message, trace, sections }
            }
        };
        self.sender.push(&message)?;
        payload.push_streams(&mut self.sender)?;
        let (Answer::Returned(payload) | Answer::Raised { payload, .. }) = answer;
        for part in payload.parts {
            self.inbox.lend(&part);
            if let Outgoing::Stream(source) = part {
                self.inbox.sent.push(source);
            }
        }
        Ok(())
    }

    /// Answers the running call, in a process that is about to end.
    ///
    /// # Errors
    /// As [`WorkerLink::answer`], or when the connection fails.
    pub(crate) fn answer_at_exit(
        &mut self,
        stamps: Stamps,
        answer: Answer<'_>,
    ) -> Result<(), LinkError> {
        let call = self.inbox.current.ok_or_else(unexpected_end)?;
        self.answer(call, stamps, Vec::new(), answer)?;
        self.flush()
    }

    /// Sends everything, and blocks until the socket has taken it.
    fn send(&mut self) -> Result<(), LinkError> {
        self.sender.skip(self.outbox.begin_sending());
        self.sender.flush()?;
        self.outbox.empty();
        Ok(())
    }

    fn push_releases(&mut self) -> Result<(), LinkError> {
        let leases = self.inbox.mapped.returned();
        if !leases.is_empty() {
            self.sender.push(&Message::Release { leases })?;
        }
        for (blob, unread) in self.inbox.blobs.gone() {
            self.sender.push(&Message::BlobDropped { blob, unread })?;
        }
        Ok(())
    }

    /// Sends the answers given so far.
    fn flush(&mut self) -> Result<(), LinkError> {
        self.held = None;
        self.push_releases()?;
        self.send()?;
        for source in self.inbox.sent.drain(..) {
            if let Some(buffer) = Arc::try_unwrap(source).ok().and_then(Source::into_owned) {
                self.receiver.recycle(buffer);
            }
        }
        Ok(())
    }
}

/// Reads once, and blocks until something arrives.
fn fill(receiver: &mut Receiver) -> io::Result<usize> {
    loop {
        match fill_in_time(receiver) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            filled => return filled,
        }
    }
}

/// Reads once, even if a signal interrupts it. `WouldBlock`: nothing has arrived within the time-out.
fn fill_in_time(receiver: &mut Receiver) -> io::Result<usize> {
    loop {
        match receiver.fill() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // The client closed without reading everything: treat it as the end.
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Ok(0),
            other => return other,
        }
    }
}
