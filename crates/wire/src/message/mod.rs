//! The messages between a client, its workers, the spawner that starts them, and agents on hosts.

mod decode;
mod encode;

use crate::host::{Examine, HostCall, HostEnd, HostLoss, Join, SECRET, Serve};
use crate::kind::Kind;
use crate::section::{Lease, Sections};

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
}
