//! The messages between a client, its workers, the spawner that starts them, and agents on hosts.

use crate::bytes::{ANY_COUNT, Order, Reader, WireError, Writer};
use crate::frame::{Frame, HEADER_LEN, Header, MAX_BODY, MAX_DESCRIPTORS, bounded};
use crate::host::{Examine, HostCall, HostEnd, HostLoss, Join, SECRET, Serve};
use crate::section::{Lease, Sections};

/// What a frame's body holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs)] // one per message, described there
pub enum Kind {
    Hello = 1,
    Welcome = 2,
    Function = 3,
    Call = 4,
    Data = 5,
    Reply = 6,
    Failure = 7,
    Segment = 8,
    Release = 9,
    Blob = 10,
    DropBlob = 11,
    Goodbye = 12,
    DropSegment = 13,
    Cancel = 14,
    Callback = 15,
    CallbackReply = 16,
    CallbackFailure = 17,
    BlobDropped = 18,
    Hold = 19,
    Fetch = 20,
    Wide = 21,
    Prepare = 32,
    Spawn = 33,
    Started = 34,
    Exited = 35,
    Kill = 36,
    Join = 48,
    Serve = 49,
    Workers = 50,
    HostCall = 51,
    Ended = 52,
    Reserve = 53,
    Reserved = 54,
    Dismiss = 55,
    Ping = 56,
    Pong = 57,
    Output = 58,
    Retract = 59,
    Retracted = 60,
    Module = 61,
    NoWorkers = 62,
    Examine = 63,
    Findings = 64,
    Echo = 65,
    Echoed = 66,
    KeepResult = 67,
    FetchResult = 68,
    KeptResult = 69,
    DropResult = 70,
    Pass = 80,
    Expect = 81,
    Missing = 82,
    NotPassed = 83,
    Packed = 84,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Kind; 54] = [
        Kind::Hello,
        Kind::Welcome,
        Kind::Function,
        Kind::Call,
        Kind::Data,
        Kind::Reply,
        Kind::Failure,
        Kind::Segment,
        Kind::Release,
        Kind::Blob,
        Kind::DropBlob,
        Kind::Goodbye,
        Kind::DropSegment,
        Kind::Cancel,
        Kind::Callback,
        Kind::CallbackReply,
        Kind::CallbackFailure,
        Kind::BlobDropped,
        Kind::Hold,
        Kind::Fetch,
        Kind::Wide,
        Kind::Prepare,
        Kind::Spawn,
        Kind::Started,
        Kind::Exited,
        Kind::Kill,
        Kind::Join,
        Kind::Serve,
        Kind::Workers,
        Kind::HostCall,
        Kind::Ended,
        Kind::Reserve,
        Kind::Reserved,
        Kind::Dismiss,
        Kind::Ping,
        Kind::Pong,
        Kind::Output,
        Kind::Retract,
        Kind::Retracted,
        Kind::Module,
        Kind::NoWorkers,
        Kind::Examine,
        Kind::Findings,
        Kind::Echo,
        Kind::Echoed,
        Kind::KeepResult,
        Kind::FetchResult,
        Kind::KeptResult,
        Kind::DropResult,
        Kind::Pass,
        Kind::Expect,
        Kind::Missing,
        Kind::NotPassed,
        Kind::Packed,
    ];

    pub(crate) fn from_code(code: u8) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| *kind as u8 == code)
    }
}

/// How a function is told to a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum FunctionForm {
    /// By its name, `module/function`.
    Named = 0,
    /// As a pickled Python function in the message's only section.
    Pickled = 1,
    /// By its name in a module, a shared library whose file the message's only section names.
    Library = 2,
}

/// The first message of a connection, from the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// Oldest format version that the client speaks.
    pub min_version: u8,
    /// Newest format version that the client speaks.
    pub max_version: u8,
    /// Whether descriptors and shared memory can cross this connection.
    pub shared_memory: bool,
    /// The worker's number within the grid.
    pub worker: u32,
    /// Payload bytes from which on shared memory is used.
    pub shared_threshold: u64,
    /// The client's monotonic clock, ns.
    pub clock: u64,
}

/// A worker's answer to [`Hello`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Welcome<'a> {
    /// The version that both speak from here on.
    pub version: u8,
    /// Process id of the worker on its host.
    pub pid: u32,
    /// The worker's monotonic clock, ns.
    pub clock: u64,
    /// What the worker runs: `native` or `python`.
    pub language: &'a str,
    /// Name of the worker's host.
    pub host: &'a str,
    /// Names the running instance of the host's kernel: equal ids share a monotonic clock.
    pub boot: &'a str,
}

/// Times of one call: moments on the worker's monotonic clock, and durations, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamps {
    /// The call was taken up: all of its arguments had come.
    pub received: u64,
    /// The function starts.
    pub calc_in: u64,
    /// The function has returned.
    pub calc_out: u64,
    /// Processor time from calc-in to calc-out; 0 if it was not measured.
    pub cpu: u64,
    /// Time from calc-in to calc-out in which the function waited for callbacks.
    pub callback_time: u64,
    /// How many callbacks it has made.
    pub callbacks: u32,
    /// Which worker of a host ran it, and its process id; 0 and 0 from a worker itself.
    pub worker: u32,
    /// See `worker`.
    pub pid: u32,
}

/// What a prepared process needs to know before it starts workers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prepare<'a> {
    /// Working directory; empty: keep the inherited one.
    pub directory: &'a str,
    /// Where modules are looked for.
    pub path: Vec<&'a str>,
    /// Modules to import, so that the workers share them.
    pub modules: Vec<&'a str>,
    /// Files of compiled modules to load, so that the workers share them.
    pub libraries: Vec<&'a str>,
}

/// A message, borrowed from the frame it came in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// Client to worker, first of all. Descriptor 0, with shared memory: the progress page.
    Hello(Hello),
    /// Worker to client, second.
    Welcome(Welcome<'a>),
    /// Client to worker: what a function number means.
    Function {
        /// Number of the function on this connection.
        function: u32,
        /// By name or by value.
        form: FunctionForm,
        /// `module/function`, or for people the name of a pickled function.
        name: &'a str,
        /// The pickled function, if it is one.
        sections: Sections<'a>,
    },
    /// Client to worker: run a function.
    Call {
        /// Number of the call, the client's own.
        call: u64,
        /// Which function.
        function: u32,
        /// Whether the reply may wait until more calls are done (they take microseconds).
        batch: bool,
        /// The arguments.
        sections: Sections<'a>,
    },
    /// The next bytes of the streamed sections of an earlier message.
    Data {
        /// Which: the number of that message among those with streams, in its direction, from 1 on.
        stream: u32,
        /// The bytes.
        bytes: &'a [u8],
    },
    /// The same, compressed: one zstd frame, which tells how many bytes it holds, at most as many as a body.
    Packed {
        /// As in [`Message::Data`].
        stream: u32,
        /// The frame of zstd.
        bytes: &'a [u8],
    },
    /// Worker to client: the function has returned.
    Reply {
        /// Which call.
        call: u64,
        /// When it ran.
        stamps: Stamps,
        /// Sections of the call that the worker still reads; others of it are released.
        retained: Vec<Lease>,
        /// The result.
        sections: Sections<'a>,
    },
    /// Worker to client: the function has raised an error, or could not be run.
    Failure {
        /// Which call.
        call: u64,
        /// When it ran.
        stamps: Stamps,
        /// Sections of the call that the worker still reads; others of it are released.
        retained: Vec<Lease>,
        /// Type of the error; one of the protocol's own starts with `gridrpc.`.
        error: &'a str,
        /// Its message.
        message: &'a str,
        /// Where it was raised, for people.
        trace: &'a str,
        /// The error itself, pickled, if it can be.
        sections: Sections<'a>,
    },
    /// Owner to reader: a shared-memory segment. Descriptor 0: its memory.
    Segment {
        /// The owner's number for it.
        segment: u32,
        /// Its length, bytes.
        len: u64,
    },
    /// Owner to reader: a segment that will not be referred to any more.
    DropSegment {
        /// The owner's number for it.
        segment: u32,
    },
    /// Reader to owner: these stretches are read no more.
    Release {
        /// The stretches.
        leases: Vec<Lease>,
    },
    /// Client to worker: shared data.
    Blob {
        /// The client's number for it.
        blob: u64,
        /// Its parts; shared ones lie in segments that only the client can write to.
        sections: Sections<'a>,
    },
    /// Client to worker: shared data that no call will refer to any more.
    DropBlob {
        /// Its number.
        blob: u64,
    },
    /// Worker to client: nothing in this process reads shared data any more that was dropped.
    BlobDropped {
        /// Its number.
        blob: u64,
        /// Whether no other process can read it either that got it from this one.
        unread: bool,
    },
    /// Client to worker: from now on, answers with so many streamed bytes and more wait, behind their
    /// first frame, to be fetched.
    Hold {
        /// How many.
        bytes: u64,
    },
    /// Client to worker: send the streams of the answer that waits.
    Fetch,
    /// Client to worker or spawner: end.
    Goodbye,
    /// Client to worker or agent: this call, which comes next, asks for several cores.
    Wide {
        /// Which call.
        call: u64,
        /// How many workers' places it takes.
        slots: u32,
        /// How many threads its function is to use.
        threads: u32,
    },
    /// Client to worker: nobody waits for this call any more; it may return early.
    Cancel {
        /// Which call.
        call: u64,
    },
    /// Worker to client: the function that runs calls one of its callback arguments.
    Callback {
        /// Which call.
        call: u64,
        /// Which of its callback parameters, from 0.
        index: u16,
        /// The callback's arguments.
        sections: Sections<'a>,
    },
    /// Client to worker: the callback has returned.
    CallbackReply {
        /// Which call.
        call: u64,
        /// The callback's results.
        sections: Sections<'a>,
    },
    /// Client to worker: the callback has failed, and so will its call.
    CallbackFailure {
        /// Which call.
        call: u64,
        /// Why.
        message: &'a str,
    },
    /// Client to spawner, before the first [`Message::Spawn`].
    Prepare(Prepare<'a>),
    /// Client to spawner: start workers. Descriptors, three for each: its connection, its stdout,
    /// its stderr.
    Spawn {
        /// The workers' numbers.
        workers: Vec<u32>,
    },
    /// Spawner to client: a worker's process exists. `pid` 0: it could not be made.
    Started {
        /// Number of the worker.
        worker: u32,
        /// Its process id, or 0.
        pid: u32,
        /// Whether it may be made later: the system is short of something.
        passes: bool,
        /// Why it could not be made.
        error: &'a str,
    },
    /// Spawner to client: a worker's process has ended.
    Exited {
        /// Number of the worker.
        worker: u32,
        /// Its process id.
        pid: u32,
        /// Its exit status, if `signal` is 0.
        status: u32,
        /// The signal that ended it, or 0.
        signal: u32,
    },
    /// Client to spawner: end this worker at once.
    Kill {
        /// Number of the worker.
        worker: u32,
    },
    /// Agent to client, first of all.
    Join(Join<'a>),
    /// Client to agent, second.
    Serve(Serve<'a>),
    /// Agent to client: how many workers have answered, and how many are wanted there.
    Workers {
        /// How many have answered.
        ready: u32,
        /// How many there are to be.
        wanted: u32,
    },
    /// Agent to client: no worker can be started; this is how the last start failed.
    NoWorkers(HostLoss<'a>),
    /// Client to agent: run a function on some worker.
    HostCall(HostCall<'a>),
    /// Agent to client: a call has ended without an answer of its function.
    Ended {
        /// Which call.
        call: u64,
        /// Why.
        end: HostEnd,
        /// How its worker was lost, if it was; for [`HostEnd::Refused`], `why`.
        loss: HostLoss<'a>,
    },
    /// Client to agent: start a worker that runs only the calls that name it.
    Reserve {
        /// The client's number for it, which no other gets.
        number: u32,
    },
    /// Agent to client: a reserved worker has answered, or is lost.
    Reserved {
        /// The client's number for it.
        number: u32,
        /// How it was lost, if it was.
        lost: Option<HostLoss<'a>>,
    },
    /// Client to agent: a reserved worker is given up.
    Dismiss {
        /// The client's number for it.
        number: u32,
    },
    /// Both: are you there?
    Ping {
        /// Names the answer.
        number: u64,
    },
    /// Both: yes.
    Pong {
        /// As in the question.
        number: u64,
        /// The answering end's monotonic clock, ns.
        clock: u64,
    },
    /// Agent to client: what a worker has written.
    Output {
        /// The worker's number on its host.
        worker: u32,
        /// Whether to its standard error; else to its standard output.
        stderr: bool,
        /// The bytes.
        sections: Sections<'a>,
    },
    /// Client to agent: calls that are wanted back, if no worker has begun them.
    Retract {
        /// Which.
        calls: Vec<u64>,
    },
    /// Agent to client: calls that no worker has begun, and none will.
    Retracted {
        /// Which.
        calls: Vec<u64>,
    },
    /// Client to agent: send shared data, which it has or is about to get, on to another agent.
    Pass {
        /// The data's number.
        blob: u64,
        /// The client's number for the other host.
        to: u32,
        /// What the other agent will admit this one by, once.
        secret: [u8; SECRET],
        /// Where the other agent can be dialled, `host:port`.
        addresses: Vec<&'a str>,
    },
    /// Client to agent: shared data comes from another agent, which shows this secret.
    Expect {
        /// The data's number.
        blob: u64,
        /// The secret.
        secret: [u8; SECRET],
    },
    /// Client to agent: the result of this call is needed by other calls. If it is large it stays on the
    /// host, and the answer says where.
    KeepResult {
        /// Which call.
        call: u64,
    },
    /// Client to agent: a result that was kept is wanted.
    FetchResult {
        /// Which call's.
        call: u64,
    },
    /// Agent to client: a result that was kept; it stays on the host all the same.
    KeptResult {
        /// Which call's.
        call: u64,
        /// The result.
        sections: Sections<'a>,
    },
    /// Client to agent: a result need not be kept any longer.
    DropResult {
        /// Which call's.
        call: u64,
    },
    /// Agent to client: shared data has not come from another agent, and will not.
    Missing {
        /// The data's number.
        blob: u64,
    },
    /// Agent to client: shared data could not be sent on.
    NotPassed {
        /// The data's number.
        blob: u64,
        /// The client's number for the host that lacks it.
        to: u32,
    },
    /// Client to agent: the file of a module, for functions to name.
    Module {
        /// Names its content.
        hash: &'a str,
        /// The file's name without folder, for people.
        name: &'a str,
        /// Its content.
        sections: Sections<'a>,
    },
    /// Client to agent, before [`Message::Serve`]: what is there on its host?
    Examine(Examine<'a>),
    /// Agent to client: what has been found.
    Findings {
        /// An object of JSON.
        text: &'a str,
    },
    /// Client to agent, before [`Message::Serve`]: data that is thrown away, and how much is to come back.
    Echo {
        /// Names the answer.
        number: u64,
        /// How many bytes, at most [`crate::MAX_ECHO`].
        back: u32,
        /// The data.
        sections: Sections<'a>,
    },
    /// Agent to client: all of that has come, and this comes back.
    Echoed {
        /// As in the question.
        number: u64,
        /// The data.
        sections: Sections<'a>,
    },
}

impl Message<'_> {
    /// The kind that the frame's header carries.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self {
            Message::Hello(_) => Kind::Hello,
            Message::Welcome(_) => Kind::Welcome,
            Message::Function { .. } => Kind::Function,
            Message::Call { .. } => Kind::Call,
            Message::Data { .. } => Kind::Data,
            Message::Packed { .. } => Kind::Packed,
            Message::Reply { .. } => Kind::Reply,
            Message::Failure { .. } => Kind::Failure,
            Message::Segment { .. } => Kind::Segment,
            Message::Release { .. } => Kind::Release,
            Message::Blob { .. } => Kind::Blob,
            Message::DropBlob { .. } => Kind::DropBlob,
            Message::BlobDropped { .. } => Kind::BlobDropped,
            Message::Hold { .. } => Kind::Hold,
            Message::Fetch => Kind::Fetch,
            Message::Goodbye => Kind::Goodbye,
            Message::DropSegment { .. } => Kind::DropSegment,
            Message::Cancel { .. } => Kind::Cancel,
            Message::Wide { .. } => Kind::Wide,
            Message::Callback { .. } => Kind::Callback,
            Message::CallbackReply { .. } => Kind::CallbackReply,
            Message::CallbackFailure { .. } => Kind::CallbackFailure,
            Message::Prepare(_) => Kind::Prepare,
            Message::Spawn { .. } => Kind::Spawn,
            Message::Started { .. } => Kind::Started,
            Message::Exited { .. } => Kind::Exited,
            Message::Kill { .. } => Kind::Kill,
            Message::Join(_) => Kind::Join,
            Message::Serve(_) => Kind::Serve,
            Message::Workers { .. } => Kind::Workers,
            Message::NoWorkers(_) => Kind::NoWorkers,
            Message::HostCall(_) => Kind::HostCall,
            Message::Ended { .. } => Kind::Ended,
            Message::Reserve { .. } => Kind::Reserve,
            Message::Reserved { .. } => Kind::Reserved,
            Message::Dismiss { .. } => Kind::Dismiss,
            Message::Ping { .. } => Kind::Ping,
            Message::Pong { .. } => Kind::Pong,
            Message::Output { .. } => Kind::Output,
            Message::Retract { .. } => Kind::Retract,
            Message::Retracted { .. } => Kind::Retracted,
            Message::Module { .. } => Kind::Module,
            Message::Examine(_) => Kind::Examine,
            Message::Findings { .. } => Kind::Findings,
            Message::Echo { .. } => Kind::Echo,
            Message::Echoed { .. } => Kind::Echoed,
            Message::KeepResult { .. } => Kind::KeepResult,
            Message::FetchResult { .. } => Kind::FetchResult,
            Message::KeptResult { .. } => Kind::KeptResult,
            Message::DropResult { .. } => Kind::DropResult,
            Message::Pass { .. } => Kind::Pass,
            Message::Expect { .. } => Kind::Expect,
            Message::Missing { .. } => Kind::Missing,
            Message::NotPassed { .. } => Kind::NotPassed,
        }
    }

    /// Appends the message as one frame without descriptors.
    ///
    /// # Errors
    /// As [`Message::encode_with`].
    pub fn encode(&self, order: Order, out: &mut Vec<u8>) -> Result<(), WireError> {
        self.encode_with(0, order, out)
    }

    /// Appends the message as one frame that says how many descriptors come with it.
    ///
    /// # Errors
    /// When it exceeds a bound of the format or an inline section's length is not that of
    /// its bytes; `out` is then as it was.
    pub fn encode_with(
        &self,
        descriptors: u16,
        order: Order,
        out: &mut Vec<u8>,
    ) -> Result<(), WireError> {
        bounded("number of descriptors", descriptors.into(), MAX_DESCRIPTORS.into())?;
        let start = out.len();
        let stream = match self {
            Message::Data { stream, .. } | Message::Packed { stream, .. } => *stream,
            _ => 0,
        };
        let header = Header { order, kind: self.kind(), descriptors, body_len: 0, stream };
        out.extend_from_slice(&header.to_bytes());
        let written = self.encode_body(&mut Writer { out, order }).and_then(|()| {
            let body_len = out.len() - start - HEADER_LEN;
            bounded("body length", body_len as u64, MAX_BODY as u64)?;
            Ok(body_len)
        });
        match written {
            Ok(body_len) => {
                // The length is known only now: write the header again, in its place.
                let whole = Header { body_len, ..header }.to_bytes();
                out[start..start + HEADER_LEN].copy_from_slice(&whole);
                Ok(())
            }
            Err(error) => {
                out.truncate(start);
                Err(error)
            }
        }
    }

    fn encode_body(&self, w: &mut Writer<'_>) -> Result<(), WireError> {
        match self {
            Message::Hello(hello) => {
                w.u8(hello.min_version);
                w.u8(hello.max_version);
                w.u16(hello.shared_memory.into());
                w.u32(hello.worker);
                w.u64(hello.shared_threshold);
                w.u64(hello.clock);
            }
            Message::Welcome(welcome) => {
                w.u8(welcome.version);
                w.u32(welcome.pid);
                w.u64(welcome.clock);
                w.text(welcome.language)?;
                w.text(welcome.host)?;
                w.text(welcome.boot)?;
            }
            Message::Function { function, form, name, sections } => {
                w.u32(*function);
                w.u8(*form as u8);
                match form {
                    FunctionForm::Pickled => w.prose(name),
                    FunctionForm::Named | FunctionForm::Library => w.text(name)?,
                }
                w.sections(sections)?;
            }
            Message::Call { call, function, batch, sections } => {
                w.u64(*call);
                w.u32(*function);
                w.u8((*batch).into());
                w.sections(sections)?;
            }
            Message::Data { bytes, .. } | Message::Packed { bytes, .. } => {
                w.out.extend_from_slice(bytes);
            }
            Message::Reply { call, stamps, retained, sections } => {
                w.outcome(*call, *stamps, retained)?;
                w.sections(sections)?;
            }
            Message::Failure { call, stamps, retained, error, message, trace, sections } => {
                w.outcome(*call, *stamps, retained)?;
                w.prose(error);
                w.prose(message);
                w.prose(trace);
                w.sections(sections)?;
            }
            Message::Segment { segment, len } => {
                w.u32(*segment);
                w.u64(*len);
            }
            Message::Release { leases } => w.leases(leases)?,
            Message::Blob { blob, sections } => {
                w.u64(*blob);
                w.sections(sections)?;
            }
            Message::DropBlob { blob } => w.u64(*blob),
            Message::BlobDropped { blob, unread } => {
                w.u64(*blob);
                w.u8((*unread).into());
            }
            Message::Hold { bytes } => w.u64(*bytes),
            Message::Fetch | Message::Goodbye => {}
            Message::DropSegment { segment } => w.u32(*segment),
            Message::Cancel { call } => w.u64(*call),
            Message::Wide { call, slots, threads } => {
                w.u64(*call);
                w.u32(*slots);
                w.u32(*threads);
            }
            Message::Callback { call, index, sections } => {
                w.u64(*call);
                w.u16(*index);
                w.sections(sections)?;
            }
            Message::CallbackReply { call, sections } => {
                w.u64(*call);
                w.sections(sections)?;
            }
            Message::CallbackFailure { call, message } => {
                w.u64(*call);
                w.prose(message);
            }
            Message::Prepare(prepare) => {
                w.text(prepare.directory)?;
                w.texts(&prepare.path)?;
                w.texts(&prepare.modules)?;
                w.texts(&prepare.libraries)?;
            }
            Message::Spawn { workers } => {
                w.count(workers.len(), "number of workers")?;
                workers.iter().for_each(|worker| w.u32(*worker));
            }
            Message::Started { worker, pid, passes, error } => {
                w.u32(*worker);
                w.u32(*pid);
                w.u8((*passes).into());
                w.prose(error);
            }
            Message::Exited { worker, pid, status, signal } => {
                w.u32(*worker);
                w.u32(*pid);
                w.u32(*status);
                w.u32(*signal);
            }
            Message::Kill { worker } => w.u32(*worker),
            Message::Join(join) => w.join(join)?,
            Message::Serve(serve) => w.serve(serve)?,
            Message::Workers { ready, wanted } => {
                w.u32(*ready);
                w.u32(*wanted);
            }
            Message::NoWorkers(loss) => w.loss(loss),
            Message::HostCall(call) => w.host_call(call)?,
            Message::Ended { call, end, loss } => {
                w.u64(*call);
                w.u8(*end as u8);
                w.loss(loss);
            }
            Message::Reserve { number } | Message::Dismiss { number } => w.u32(*number),
            Message::Reserved { number, lost } => {
                w.u32(*number);
                w.u8(lost.is_some().into());
                lost.iter().for_each(|lost| w.loss(lost));
            }
            Message::Ping { number } => w.u64(*number),
            Message::Pong { number, clock } => {
                w.u64(*number);
                w.u64(*clock);
            }
            Message::Output { worker, stderr, sections } => {
                w.u32(*worker);
                w.u8((*stderr).into());
                w.sections(sections)?;
            }
            Message::Retract { calls } | Message::Retracted { calls } => w.numbers(calls)?,
            Message::Pass { blob, to, secret, addresses } => {
                w.u64(*blob);
                w.u32(*to);
                w.out.extend_from_slice(secret);
                w.texts(addresses)?;
            }
            Message::Expect { blob, secret } => {
                w.u64(*blob);
                w.out.extend_from_slice(secret);
            }
            Message::KeepResult { call }
            | Message::FetchResult { call }
            | Message::DropResult { call } => w.u64(*call),
            Message::KeptResult { call, sections } => {
                w.u64(*call);
                w.sections(sections)?;
            }
            Message::Missing { blob } => w.u64(*blob),
            Message::NotPassed { blob, to } => {
                w.u64(*blob);
                w.u32(*to);
            }
            Message::Module { hash, name, sections } => {
                w.text(hash)?;
                w.text(name)?;
                w.sections(sections)?;
            }
            Message::Examine(examine) => w.examine(examine)?,
            Message::Findings { text } => w.text(text)?,
            Message::Echo { number, back, sections } => {
                w.u64(*number);
                w.u32(*back);
                w.sections(sections)?;
            }
            Message::Echoed { number, sections } => {
                w.u64(*number);
                w.sections(sections)?;
            }
        }
        Ok(())
    }
}

impl<'a> Message<'a> {
    /// Decodes the message in a frame.
    ///
    /// # Errors
    /// When the body is not a message of the kind that the header names.
    pub fn decode(frame: &Frame<'a>) -> Result<Message<'a>, WireError> {
        let mut r = Reader::new(frame.body, frame.header.order);
        let message = match frame.header.kind {
            Kind::Hello => Message::Hello(Hello {
                min_version: r.u8("oldest version")?,
                max_version: r.u8("newest version")?,
                shared_memory: match r.u16("shared memory")? {
                    0 => false,
                    1 => true,
                    other => return Err(meaningless("shared memory", other)),
                },
                worker: r.u32("worker")?,
                shared_threshold: r.u64("threshold")?,
                clock: r.u64("clock")?,
            }),
            Kind::Welcome => Message::Welcome(Welcome {
                version: r.u8("version")?,
                pid: r.u32("pid")?,
                clock: r.u64("clock")?,
                language: r.text("language")?,
                host: r.text("host")?,
                boot: r.text("boot id")?,
            }),
            Kind::Function => Message::Function {
                function: r.u32("function")?,
                form: match r.u8("function form")? {
                    0 => FunctionForm::Named,
                    1 => FunctionForm::Pickled,
                    2 => FunctionForm::Library,
                    other => return Err(meaningless("function form", other)),
                },
                name: r.text("function name")?,
                sections: r.sections()?,
            },
            Kind::Call => Message::Call {
                call: r.u64("call")?,
                function: r.u32("function")?,
                batch: r.flag("batch")?,
                sections: r.sections()?,
            },
            Kind::Data => Message::Data {
                stream: frame.header.stream,
                bytes: r.bytes(frame.body.len(), "data")?,
            },
            Kind::Packed => Message::Packed {
                stream: frame.header.stream,
                bytes: r.bytes(frame.body.len(), "packed data")?,
            },
            Kind::Reply => {
                let (call, stamps, retained) = r.outcome()?;
                Message::Reply { call, stamps, retained, sections: r.sections()? }
            }
            Kind::Failure => {
                let (call, stamps, retained) = r.outcome()?;
                Message::Failure {
                    call,
                    stamps,
                    retained,
                    error: r.text("error")?,
                    message: r.text("error message")?,
                    trace: r.text("trace")?,
                    sections: r.sections()?,
                }
            }
            Kind::Segment => {
                Message::Segment { segment: r.u32("segment")?, len: r.u64("segment length")? }
            }
            Kind::Release => Message::Release { leases: r.leases()? },
            Kind::Blob => Message::Blob { blob: r.u64("blob")?, sections: r.sections()? },
            Kind::DropBlob => Message::DropBlob { blob: r.u64("blob")? },
            Kind::BlobDropped => {
                Message::BlobDropped { blob: r.u64("blob")?, unread: r.flag("unread")? }
            }
            Kind::Hold => Message::Hold { bytes: r.u64("bytes")? },
            Kind::Fetch => Message::Fetch,
            Kind::Goodbye => Message::Goodbye,
            Kind::DropSegment => Message::DropSegment { segment: r.u32("segment")? },
            Kind::Cancel => Message::Cancel { call: r.u64("call")? },
            Kind::Wide => Message::Wide {
                call: r.u64("call")?,
                slots: r.u32("slots")?,
                threads: r.u32("threads")?,
            },
            Kind::Callback => Message::Callback {
                call: r.u64("call")?,
                index: r.u16("callback")?,
                sections: r.sections()?,
            },
            Kind::CallbackReply => {
                Message::CallbackReply { call: r.u64("call")?, sections: r.sections()? }
            }
            Kind::CallbackFailure => {
                Message::CallbackFailure { call: r.u64("call")?, message: r.text("message")? }
            }
            Kind::Prepare => Message::Prepare(Prepare {
                directory: r.text("directory")?,
                path: r.texts("path")?,
                modules: r.texts("modules")?,
                libraries: r.texts("libraries")?,
            }),
            Kind::Spawn => {
                let count = r.count(4, ANY_COUNT, "number of workers")?;
                Message::Spawn { workers: r.list(count, |r| r.u32("worker"))? }
            }
            Kind::Started => Message::Started {
                worker: r.u32("worker")?,
                pid: r.u32("pid")?,
                passes: r.flag("passes")?,
                error: r.text("error")?,
            },
            Kind::Exited => Message::Exited {
                worker: r.u32("worker")?,
                pid: r.u32("pid")?,
                status: r.u32("status")?,
                signal: r.u32("signal")?,
            },
            Kind::Kill => Message::Kill { worker: r.u32("worker")? },
            Kind::Join => Message::Join(r.join()?),
            Kind::Serve => Message::Serve(r.serve()?),
            Kind::Workers => Message::Workers { ready: r.u32("ready")?, wanted: r.u32("wanted")? },
            Kind::NoWorkers => Message::NoWorkers(r.loss()?),
            Kind::HostCall => Message::HostCall(r.host_call()?),
            Kind::Ended => {
                Message::Ended { call: r.u64("call")?, end: r.host_end()?, loss: r.loss()? }
            }
            Kind::Reserve => Message::Reserve { number: r.u32("number")? },
            Kind::Dismiss => Message::Dismiss { number: r.u32("number")? },
            Kind::Reserved => Message::Reserved {
                number: r.u32("number")?,
                lost: if r.flag("lost")? { Some(r.loss()?) } else { None },
            },
            Kind::Ping => Message::Ping { number: r.u64("number")? },
            Kind::Pong => Message::Pong { number: r.u64("number")?, clock: r.u64("clock")? },
            Kind::Output => Message::Output {
                worker: r.u32("worker")?,
                stderr: r.flag("stream")?,
                sections: r.sections()?,
            },
            Kind::Retract => Message::Retract { calls: r.numbers("calls")? },
            Kind::Retracted => Message::Retracted { calls: r.numbers("calls")? },
            Kind::Pass => Message::Pass {
                blob: r.u64("blob")?,
                to: r.u32("host")?,
                secret: r.secret()?,
                addresses: r.texts("addresses")?,
            },
            Kind::Expect => Message::Expect { blob: r.u64("blob")?, secret: r.secret()? },
            Kind::KeepResult => Message::KeepResult { call: r.u64("call")? },
            Kind::FetchResult => Message::FetchResult { call: r.u64("call")? },
            Kind::KeptResult => {
                Message::KeptResult { call: r.u64("call")?, sections: r.sections()? }
            }
            Kind::DropResult => Message::DropResult { call: r.u64("call")? },
            Kind::Missing => Message::Missing { blob: r.u64("blob")? },
            Kind::NotPassed => Message::NotPassed { blob: r.u64("blob")?, to: r.u32("host")? },
            Kind::Module => Message::Module {
                hash: r.text("hash")?,
                name: r.text("module name")?,
                sections: r.sections()?,
            },
            Kind::Examine => Message::Examine(r.examine()?),
            Kind::Findings => Message::Findings { text: r.text("findings")? },
            Kind::Echo => Message::Echo {
                number: r.u64("number")?,
                back: r.u32("bytes back")?,
                sections: r.sections()?,
            },
            Kind::Echoed => Message::Echoed { number: r.u64("number")?, sections: r.sections()? },
        };
        r.finish()?;
        Ok(message)
    }
}

const LEASE_LEN: usize = 12;

impl Writer<'_> {
    fn outcome(&mut self, call: u64, stamps: Stamps, kept: &[Lease]) -> Result<(), WireError> {
        self.u64(call);
        self.u64(stamps.received);
        self.u64(stamps.calc_in);
        self.u64(stamps.calc_out);
        self.u64(stamps.cpu);
        self.u64(stamps.callback_time);
        self.u32(stamps.callbacks);
        self.u32(stamps.worker);
        self.u32(stamps.pid);
        self.leases(kept)
    }

    fn leases(&mut self, leases: &[Lease]) -> Result<(), WireError> {
        self.count(leases.len(), "number of leases")?;
        leases.iter().for_each(|lease| self.lease(*lease));
        Ok(())
    }

    pub(crate) fn texts(&mut self, texts: &[&str]) -> Result<(), WireError> {
        self.count(texts.len(), "number of texts")?;
        texts.iter().try_for_each(|text| self.text(text))
    }
}

impl<'a> Reader<'a> {
    fn outcome(&mut self) -> Result<(u64, Stamps, Vec<Lease>), WireError> {
        let call = self.u64("call")?;
        let stamps = Stamps {
            received: self.u64("received")?,
            calc_in: self.u64("calc-in")?,
            calc_out: self.u64("calc-out")?,
            cpu: self.u64("processor time")?,
            callback_time: self.u64("callback time")?,
            callbacks: self.u32("callbacks")?,
            worker: self.u32("worker")?,
            pid: self.u32("pid")?,
        };
        Ok((call, stamps, self.leases()?))
    }

    pub(crate) fn flag(&mut self, what: &'static str) -> Result<bool, WireError> {
        match self.u8(what)? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(meaningless(what, other)),
        }
    }

    fn leases(&mut self) -> Result<Vec<Lease>, WireError> {
        let count = self.count(LEASE_LEN, ANY_COUNT, "number of leases")?;
        self.list(count, Reader::lease)
    }

    pub(crate) fn texts(&mut self, what: &'static str) -> Result<Vec<&'a str>, WireError> {
        let count = self.count(4, ANY_COUNT, what)?;
        self.list(count, |r| r.text(what))
    }
}

fn meaningless(what: &'static str, value: impl Into<u64>) -> WireError {
    WireError::Meaningless { what, value: value.into() }
}
