//! Messages between a client, its workers, the spawner that starts them, and agents on hosts.

mod decode;
mod encode;

use crate::host::{Examine, HostCall, HostEnd, HostLoss, Join, SECRET, Serve};
use crate::kind::Kind;
use crate::section::{Lease, Sections};
use crate::trace_context::TraceContext;

/// Form of a function for workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum FunctionForm {
    /// By its name, `module/function`.
    Named = 0,
    /// As a pickled Python function in the message's only section.
    Pickled = 1,
    /// By its name in a module: a shared library whose file is in the message's only section.
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
    /// Minimum size of payloads in shared memory, bytes.
    pub shared_threshold: u64,
    /// The client's monotonic clock, ns.
    pub clock: u64,
}

/// A worker's answer to [`Hello`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Welcome<'a> {
    /// Format version for the rest of the connection.
    pub version: u8,
    /// Process id of the worker on its host.
    pub pid: u32,
    /// The worker's monotonic clock, ns.
    pub clock: u64,
    /// Language of the worker: `native` or `python`.
    pub language: &'a str,
    /// Name of the worker's host.
    pub host: &'a str,
    /// Identifies the running kernel instance of the host: equal ids share a monotonic clock.
    pub boot: &'a str,
}

/// Times of one call: times on the worker's monotonic clock, and durations, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamps {
    /// All arguments of the call had arrived.
    pub received: u64,
    /// The function starts.
    pub calc_in: u64,
    /// The function has returned.
    pub calc_out: u64,
    /// Processor time from calc-in to calc-out; 0 if not measured.
    pub cpu: u64,
    /// Time from calc-in to calc-out that the function spent waiting for callbacks.
    pub callback_time: u64,
    /// Number of its callbacks.
    pub callbacks: u32,
    /// Number of the worker of a host that ran it; 0 from a worker itself.
    pub worker: u32,
    /// Process id of that worker; 0 from a worker itself.
    pub pid: u32,
}

/// Settings of a spawner, before it starts workers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prepare<'a> {
    /// Working directory; empty: keep the inherited one.
    pub directory: &'a str,
    /// Module search path.
    pub path: Vec<&'a str>,
    /// Modules to import, so that the workers share them.
    pub modules: Vec<&'a str>,
    /// Files of compiled modules to load, so that the workers share them.
    pub libraries: Vec<&'a str>,
}

/// Number of the ping of an agent that takes no more calls. Its answer follows the last call of the client.
pub const PARTING: u64 = u64::MAX;

/// A message, borrowed from its frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// Client to worker, first message. Descriptor 0, with shared memory: the progress page.
    Hello(Hello),
    /// Worker to client, second message.
    Welcome(Welcome<'a>),
    /// Client to worker: defines a function number.
    Function {
        /// Number of the function on this connection.
        function: u32,
        /// Form of the function.
        form: FunctionForm,
        /// `module/function`, or the readable name of a pickled function.
        name: &'a str,
        /// The pickled function, if it is one.
        sections: Sections<'a>,
    },
    /// Client to worker: run a function.
    Call {
        /// The client's number of the call.
        call: u64,
        /// The function.
        function: u32,
        /// Whether the reply may wait until more calls are done (they take microseconds).
        batch: bool,
        /// The arguments.
        sections: Sections<'a>,
    },
    /// The next bytes of the streamed sections of an earlier message.
    Data {
        /// Number of that message among those with streams, in its direction, from 1.
        stream: u32,
        /// The bytes.
        bytes: &'a [u8],
    },
    /// Compressed [`Message::Data`]: one zstd frame that contains its decompressed size, at most that of a body.
    Packed {
        /// As in [`Message::Data`].
        stream: u32,
        /// The zstd frame.
        bytes: &'a [u8],
    },
    /// Worker to client: the function has returned.
    Reply {
        /// The call.
        call: u64,
        /// Times of the call.
        stamps: Stamps,
        /// Sections of the call that the worker still reads; its others are released.
        retained: Vec<Lease>,
        /// The result.
        sections: Sections<'a>,
    },
    /// Worker to client: the function has raised an error, or could not run.
    Failure {
        /// The call.
        call: u64,
        /// Times of the call.
        stamps: Stamps,
        /// Sections of the call that the worker still reads; its others are released.
        retained: Vec<Lease>,
        /// Type of the error; the protocol's own types start with `gridrpc.`.
        error: &'a str,
        /// Its message.
        message: &'a str,
        /// Where it was raised, in readable form.
        trace: &'a str,
        /// The pickled error, if it can be pickled.
        sections: Sections<'a>,
    },
    /// Owner to reader: a shared-memory segment. Descriptor 0: its memory.
    Segment {
        /// The owner's number of it.
        segment: u32,
        /// Its length, bytes.
        len: u64,
    },
    /// Owner to reader: a segment that no later message refers to.
    DropSegment {
        /// The owner's number of it.
        segment: u32,
    },
    /// Reader to owner: stretches that are no longer read.
    Release {
        /// The stretches.
        leases: Vec<Lease>,
    },
    /// Client to worker: shared data.
    Blob {
        /// The client's number of it.
        blob: u64,
        /// Its parts; shared ones lie in segments that only the client can write to.
        sections: Sections<'a>,
    },
    /// Client to worker: shared data that no later call refers to.
    DropBlob {
        /// Its number.
        blob: u64,
    },
    /// Worker to client: this process no longer reads dropped shared data.
    BlobDropped {
        /// Its number.
        blob: u64,
        /// Whether no other process that got it from this one can read it either.
        unread: bool,
    },
    /// Client to worker: from now on, answers with at least this many streamed bytes wait, after their first frame,
    /// to be fetched.
    Hold {
        /// The number of bytes.
        bytes: u64,
    },
    /// Client to worker: send the streams of the waiting answer.
    Fetch,
    /// Client to worker or spawner: end.
    Goodbye,
    /// Client to worker or agent: this call, which comes next, uses several cores.
    Wide {
        /// The call.
        call: u64,
        /// Number of workers' places that it takes.
        slots: u32,
        /// Number of threads that its function may use.
        threads: u32,
    },
    /// Client to agent: this call, which comes next, belongs to a trace.
    Trace {
        /// The call.
        call: u64,
        /// The client's span.
        context: TraceContext,
    },
    /// Client to worker: this call has been abandoned; it may return early.
    Cancel {
        /// The call.
        call: u64,
    },
    /// Worker to client: the running function calls one of its callback arguments.
    Callback {
        /// The call.
        call: u64,
        /// Index of its callback parameter, from 0.
        index: u16,
        /// The callback's arguments.
        sections: Sections<'a>,
    },
    /// Client to worker: the callback has returned.
    CallbackReply {
        /// The call.
        call: u64,
        /// The callback's results.
        sections: Sections<'a>,
    },
    /// Client to worker: the callback has failed, and so will its call.
    CallbackFailure {
        /// The call.
        call: u64,
        /// The reason.
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
    /// Spawner to client: a worker's process exists. `pid` 0: it could not be created.
    Started {
        /// Number of the worker.
        worker: u32,
        /// Its process id, or 0.
        pid: u32,
        /// Whether it may succeed later: the system is short of a resource.
        passes: bool,
        /// Reason why it could not be created.
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
    /// Agent to client, first message.
    Join(Join<'a>),
    /// Client to agent, second message.
    Serve(Serve<'a>),
    /// Agent to client: numbers of ready and of wanted workers.
    Workers {
        /// Number of ready workers, and of those that start while calls wait.
        ready: u32,
        /// Number of wanted workers.
        wanted: u32,
    },
    /// Agent to client: no worker can be started; contains the last failure.
    NoWorkers(HostLoss<'a>),
    /// Client to agent: run a function on some worker.
    HostCall(HostCall<'a>),
    /// Agent to client: a call has ended without an answer of its function.
    Ended {
        /// The call.
        call: u64,
        /// The reason.
        end: HostEnd,
        /// The loss of its worker, if lost; for [`HostEnd::Refused`], `why`.
        loss: HostLoss<'a>,
    },
    /// Client to agent: start a worker that runs only calls bound to it.
    Reserve {
        /// The client's number of it, which is not reused.
        number: u32,
    },
    /// Agent to client: a reserved worker is ready or lost.
    Reserved {
        /// The client's number of it.
        number: u32,
        /// Its loss, if it was lost.
        lost: Option<HostLoss<'a>>,
    },
    /// Client to agent: a reserved worker is released.
    Dismiss {
        /// The client's number of it.
        number: u32,
    },
    /// Both directions: liveness check.
    Ping {
        /// Identifies the answer.
        number: u64,
    },
    /// Both directions: answer to a ping.
    Pong {
        /// As in the ping.
        number: u64,
        /// The answering end's monotonic clock, ns.
        clock: u64,
    },
    /// Agent to client: output of a worker.
    Output {
        /// The worker's number on its host.
        worker: u32,
        /// Whether the output is from its standard error; otherwise from its standard output.
        stderr: bool,
        /// The bytes.
        sections: Sections<'a>,
    },
    /// Client to agent: give back calls that no worker has begun.
    Retract {
        /// The calls.
        calls: Vec<u64>,
    },
    /// Agent to client: calls that no worker has begun, and none will.
    Retracted {
        /// The calls.
        calls: Vec<u64>,
    },
    /// Client to agent: forward shared data, which it has or is about to get, to another agent.
    Pass {
        /// The data's number.
        blob: u64,
        /// The client's number of the other host.
        to: u32,
        /// Secret that admits this agent to the other one, once.
        secret: [u8; SECRET],
        /// Addresses of the other agent, `host:port`.
        addresses: Vec<&'a str>,
    },
    /// Client to agent: another agent, which presents this secret, will send shared data.
    Expect {
        /// The data's number.
        blob: u64,
        /// The secret.
        secret: [u8; SECRET],
    },
    /// Client to agent: other calls need the result of this call. A large result stays on the host, and the answer
    /// says where.
    KeepResult {
        /// The call.
        call: u64,
    },
    /// Client to agent: send a kept result.
    FetchResult {
        /// The call of the result.
        call: u64,
    },
    /// Agent to client: a kept result, which also stays on the host.
    KeptResult {
        /// The call of the result.
        call: u64,
        /// The result.
        sections: Sections<'a>,
    },
    /// Client to agent: drop a kept result.
    DropResult {
        /// The call of the result.
        call: u64,
    },
    /// Client to server: keep this call as a detached one, even if it runs already.
    Detach {
        /// The call.
        call: u64,
    },
    /// Server to client: the call is a detached one now, and has no other answer.
    Detached {
        /// The call.
        call: u64,
        /// The id of the detached call.
        id: &'a str,
    },
    /// Server to client: the call cannot be detached. Its answer follows as usual.
    NotDetached {
        /// The call.
        call: u64,
        /// Name of the error, as in a `Failure`.
        error: &'a str,
        /// Message for people.
        message: &'a str,
    },
    /// Client to agent: send a kept result to another agent, as shared data.
    PassResult {
        /// The call of the result.
        call: u64,
        /// The number that it has there as shared data.
        blob: u64,
        /// The client's number of the other host.
        to: u32,
        /// Secret that admits this agent to the other one, once.
        secret: [u8; SECRET],
        /// Addresses of the other agent, `host:port`.
        addresses: Vec<&'a str>,
    },
    /// Agent to client: shared data has not arrived from another agent, and will not.
    Missing {
        /// The data's number.
        blob: u64,
    },
    /// Agent to client: shared data could not be forwarded.
    NotPassed {
        /// The data's number.
        blob: u64,
        /// The client's number of the host that lacks it.
        to: u32,
    },
    /// Client to agent: the file of a module, for functions to refer to.
    Module {
        /// Hash of its content.
        hash: &'a str,
        /// The file's name without its folder, for people.
        name: &'a str,
        /// Its content.
        sections: Sections<'a>,
    },
    /// Client to agent, before [`Message::Serve`]: query about its host.
    Examine(Examine<'a>),
    /// Agent to client: results of the query.
    Findings {
        /// A JSON object.
        text: &'a str,
    },
    /// Client to agent, before [`Message::Serve`]: data to discard, and the size of the answer.
    Echo {
        /// Identifies the answer.
        number: u64,
        /// Size of the answer, bytes, at most [`crate::MAX_ECHO`].
        back: u32,
        /// The data.
        sections: Sections<'a>,
    },
    /// Agent to client: all of that data has arrived; contains the answer.
    Echoed {
        /// As in the request.
        number: u64,
        /// The data.
        sections: Sections<'a>,
    },
}

impl Message<'_> {
    /// The kind for the frame's header.
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
            Message::Trace { .. } => Kind::Trace,
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
            Message::Detach { .. } => Kind::Detach,
            Message::Detached { .. } => Kind::Detached,
            Message::NotDetached { .. } => Kind::NotDetached,
            Message::Pass { .. } => Kind::Pass,
            Message::PassResult { .. } => Kind::PassResult,
            Message::Expect { .. } => Kind::Expect,
            Message::Missing { .. } => Kind::Missing,
            Message::NotPassed { .. } => Kind::NotPassed,
        }
    }
}
