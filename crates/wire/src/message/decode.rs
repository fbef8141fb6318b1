//! Decoding of messages.

use super::{FunctionForm, Hello, Kind, Message, Prepare, Stamps, Welcome};
use crate::bytes::{ANY_COUNT, Reader, WireError};
use crate::frame::Frame;
use crate::section::Lease;
use crate::trace_context::TraceContext;

impl<'a> Message<'a> {
    /// Decodes the message in a frame.
    ///
    /// # Errors
    /// When the body is not a message of the kind in the header.
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
            Kind::Trace => {
                Message::Trace { call: r.u64("call")?, context: TraceContext::read(&mut r)? }
            }
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
            Kind::PassResult => Message::PassResult {
                call: r.u64("call")?,
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
            Kind::Detach => Message::Detach { call: r.u64("call")? },
            Kind::Detached => Message::Detached { call: r.u64("call")?, id: r.text("id")? },
            Kind::NotDetached => Message::NotDetached {
                call: r.u64("call")?,
                error: r.text("error")?,
                message: r.text("message")?,
            },
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
