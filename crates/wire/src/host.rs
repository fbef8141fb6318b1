//! Messages between a client and the agent on a host, which runs workers there for it.

use crate::bytes::{Reader, WireError, Writer};
use crate::section::Sections;

/// The first message of an agent, to the client that it has dialled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Join<'a> {
    /// Oldest format version that the agent speaks.
    pub min_version: u8,
    /// Newest format version that the agent speaks.
    pub max_version: u8,
    /// Process id of the agent on its host.
    pub pid: u32,
    /// Processors that the agent may use.
    pub processors: u32,
    /// The agent's monotonic clock, ns.
    pub clock: u64,
    /// Maximum memory of the agent's workers in all, bytes; 0: unknown.
    pub memory: u64,
    /// Name of its host.
    pub host: &'a str,
    /// Identifies the running kernel instance of the host: equal ids share a monotonic clock.
    pub boot: &'a str,
    /// Version of its program.
    pub program: &'a str,
    /// Its port for other agents of the grid, or 0.
    pub port: u16,
    /// Addresses of the host for `port`.
    pub addresses: Vec<&'a str>,
}

/// Workers that a client requests from an agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Serve<'a> {
    /// Format version for the rest of the connection.
    pub version: u8,
    /// Number of workers; 0: one for each processor.
    pub workers: u32,
    /// Minimum size of payloads in shared memory, bytes.
    pub shared_threshold: u64,
    /// Free shared memory kept for later calls, bytes.
    pub keep_free: u64,
    /// How long an abandoned call may continue before its worker is ended, ns.
    pub grace: u64,
    /// Number of workers that an idempotent call may lose before it fails.
    pub retries: u32,
    /// Number of calls after which a worker's process is replaced.
    pub calls_per_process: u64,
    /// Time without data after which the other end counts as lost, ns.
    pub heartbeat: u64,
    /// Compression of data: 0 never, 1 where the link is slower than the compressor, 2 always.
    pub compression: u8,
    /// The program that starts workers; empty: the agent's own, whose workers are native.
    pub program: &'a str,
    /// Its arguments.
    pub arguments: Vec<&'a str>,
    /// Environment variables, `NAME=VALUE`.
    pub environment: Vec<&'a str>,
    /// Working directory of the workers; empty: the agent's own.
    pub directory: &'a str,
    /// Search path of Python modules, before the default one.
    pub path: Vec<&'a str>,
    /// Python modules to import before workers start.
    pub modules: Vec<&'a str>,
    /// Folder for programs and modules; empty: the agent's choice.
    pub staging: &'a str,
    /// Hashes of compiled modules, sent earlier, to load before workers start.
    pub preload: Vec<&'a str>,
}

/// Maximum number of bytes that an agent returns for one [`crate::Message::Echo`].
pub const MAX_ECHO: u32 = 64 << 20;

/// A client's query about a host, before the agent serves it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Examine<'a> {
    /// Python interpreter of its workers; empty: skip Python.
    pub python: &'a str,
    /// Working directory of the workers; empty: the agent's own.
    pub directory: &'a str,
    /// Folder for programs and modules; empty: the agent's choice.
    pub staging: &'a str,
    /// Environment variables of the workers, `NAME=VALUE`.
    pub environment: Vec<&'a str>,
}

/// A call for any worker of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostCall<'a> {
    /// The client's number of the call.
    pub call: u64,
    /// The function.
    pub function: u32,
    /// Number of the reserved worker that has to run it; `u32::MAX`: any that is not reserved.
    pub on: u32,
    /// Whether it may run again when its worker is lost.
    pub idempotent: bool,
    /// Shared data that it refers to.
    pub blobs: Vec<u64>,
    /// The arguments.
    pub sections: Sections<'a>,
}

/// Bytes of a secret that admits one agent to another.
pub const SECRET: usize = 32;

/// Loss of a worker of a host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostLoss<'a> {
    /// The worker's number on its host.
    pub worker: u32,
    /// Its process id; 0 if it never had one.
    pub pid: u32,
    /// Cause of the loss: see [`HostLoss::EXIT`] and the following constants.
    pub cause: u8,
    /// Exit status or signal.
    pub number: u32,
    /// The reason, if `cause` is not sufficient.
    pub why: &'a str,
    /// Its host.
    pub host: &'a str,
    /// Last lines of its standard error.
    pub stderr: &'a str,
}

impl HostLoss<'_> {
    /// It ended with the exit status `number`.
    pub const EXIT: u8 = 0;
    /// Signal `number` ended it.
    pub const SIGNAL: u8 = 1;
    /// Signal `number` ended it while the kernel was out of memory.
    pub const OUT_OF_MEMORY: u8 = 2;
    /// It failed: `why`.
    pub const FAILED: u8 = 3;
    /// The system was short of a resource: `why`.
    pub const SHORTAGE: u8 = 4;
}

/// Reason why a call on a host ended without an answer of its function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum HostEnd {
    /// Its worker was lost.
    Lost = 0,
    /// It was cancelled.
    Cancelled = 1,
    /// The host cannot start workers.
    NoWorkers = 2,
    /// It was rejected.
    Refused = 3,
}

impl Writer<'_> {
    pub(crate) fn join(&mut self, join: &Join<'_>) -> Result<(), WireError> {
        self.u8(join.min_version);
        self.u8(join.max_version);
        self.u32(join.pid);
        self.u32(join.processors);
        self.u64(join.clock);
        self.u64(join.memory);
        self.text(join.host)?;
        self.text(join.boot)?;
        self.text(join.program)?;
        self.u16(join.port);
        self.texts(&join.addresses)
    }

    pub(crate) fn serve(&mut self, serve: &Serve<'_>) -> Result<(), WireError> {
        self.u8(serve.version);
        self.u32(serve.workers);
        self.u64(serve.shared_threshold);
        self.u64(serve.keep_free);
        self.u64(serve.grace);
        self.u32(serve.retries);
        self.u64(serve.calls_per_process);
        self.u64(serve.heartbeat);
        self.u8(serve.compression);
        self.text(serve.program)?;
        self.texts(&serve.arguments)?;
        self.texts(&serve.environment)?;
        self.text(serve.directory)?;
        self.texts(&serve.path)?;
        self.texts(&serve.modules)?;
        self.text(serve.staging)?;
        self.texts(&serve.preload)
    }

    pub(crate) fn examine(&mut self, examine: &Examine<'_>) -> Result<(), WireError> {
        self.text(examine.python)?;
        self.text(examine.directory)?;
        self.text(examine.staging)?;
        self.texts(&examine.environment)
    }

    pub(crate) fn host_call(&mut self, call: &HostCall<'_>) -> Result<(), WireError> {
        self.u64(call.call);
        self.u32(call.function);
        self.u32(call.on);
        self.u8(call.idempotent.into());
        self.numbers(&call.blobs)?;
        self.sections(&call.sections)
    }

    pub(crate) fn loss(&mut self, loss: &HostLoss<'_>) {
        self.u32(loss.worker);
        self.u32(loss.pid);
        self.u8(loss.cause);
        self.u32(loss.number);
        self.prose(loss.why);
        self.prose(loss.host);
        self.prose(loss.stderr);
    }

    pub(crate) fn numbers(&mut self, numbers: &[u64]) -> Result<(), WireError> {
        self.count(numbers.len(), "number of numbers")?;
        numbers.iter().for_each(|number| self.u64(*number));
        Ok(())
    }
}

impl<'a> Reader<'a> {
    pub(crate) fn join(&mut self) -> Result<Join<'a>, WireError> {
        Ok(Join {
            min_version: self.u8("oldest version")?,
            max_version: self.u8("newest version")?,
            pid: self.u32("pid")?,
            processors: self.u32("processors")?,
            clock: self.u64("clock")?,
            memory: self.u64("memory")?,
            host: self.text("host")?,
            boot: self.text("boot id")?,
            program: self.text("program version")?,
            port: self.u16("port")?,
            addresses: self.texts("addresses")?,
        })
    }

    pub(crate) fn serve(&mut self) -> Result<Serve<'a>, WireError> {
        Ok(Serve {
            version: self.u8("version")?,
            workers: self.u32("workers")?,
            shared_threshold: self.u64("threshold")?,
            keep_free: self.u64("free memory")?,
            grace: self.u64("grace")?,
            retries: self.u32("retries")?,
            calls_per_process: self.u64("calls per process")?,
            heartbeat: self.u64("heartbeat")?,
            compression: match self.u8("compression")? {
                way @ ..=2 => way,
                other => {
                    let value = other.into();
                    return Err(WireError::Meaningless { what: "compression", value });
                }
            },
            program: self.text("program")?,
            arguments: self.texts("arguments")?,
            environment: self.texts("environment")?,
            directory: self.text("directory")?,
            path: self.texts("path")?,
            modules: self.texts("modules")?,
            staging: self.text("staging folder")?,
            preload: self.texts("preload")?,
        })
    }

    pub(crate) fn examine(&mut self) -> Result<Examine<'a>, WireError> {
        Ok(Examine {
            python: self.text("python")?,
            directory: self.text("directory")?,
            staging: self.text("staging folder")?,
            environment: self.texts("environment")?,
        })
    }

    pub(crate) fn host_call(&mut self) -> Result<HostCall<'a>, WireError> {
        Ok(HostCall {
            call: self.u64("call")?,
            function: self.u32("function")?,
            on: self.u32("reserved worker")?,
            idempotent: self.flag("idempotent")?,
            blobs: self.numbers("blobs")?,
            sections: self.sections()?,
        })
    }

    pub(crate) fn loss(&mut self) -> Result<HostLoss<'a>, WireError> {
        Ok(HostLoss {
            worker: self.u32("worker")?,
            pid: self.u32("pid")?,
            cause: match self.u8("cause")? {
                cause @ ..=HostLoss::SHORTAGE => cause,
                other => {
                    let value = other.into();
                    return Err(WireError::Meaningless { what: "cause", value });
                }
            },
            number: self.u32("status or signal")?,
            why: self.text("why")?,
            host: self.text("host")?,
            stderr: self.text("standard error")?,
        })
    }

    pub(crate) fn host_end(&mut self) -> Result<HostEnd, WireError> {
        Ok(match self.u8("end")? {
            0 => HostEnd::Lost,
            1 => HostEnd::Cancelled,
            2 => HostEnd::NoWorkers,
            3 => HostEnd::Refused,
            other => {
                return Err(WireError::Meaningless { what: "end", value: other.into() });
            }
        })
    }

    pub(crate) fn secret(&mut self) -> Result<[u8; SECRET], WireError> {
        let bytes = self.bytes(SECRET, "secret")?;
        bytes.try_into().map_err(|_| WireError::Truncated("secret"))
    }

    pub(crate) fn numbers(&mut self, what: &'static str) -> Result<Vec<u64>, WireError> {
        let count = self.count(8, crate::bytes::ANY_COUNT, what)?;
        self.list(count, |r| r.u64(what))
    }
}
