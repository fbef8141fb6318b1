//! Encoding of messages.

use super::{FunctionForm, Message, Stamps};
use crate::bytes::{MAX_BODY, Order, WireError, Writer, bounded};
use crate::frame::{HEADER_LEN, Header, MAX_DESCRIPTORS};
use crate::section::Lease;

impl Message<'_> {
    /// Appends the message as one frame without descriptors.
    ///
    /// # Errors
    /// As [`Message::encode_with`].
    pub fn encode(&self, order: Order, out: &mut Vec<u8>) -> Result<(), WireError> {
        self.encode_with(0, order, out)
    }

    /// Appends the message as one frame that announces this many descriptors.
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
                // The length is known only now: overwrite the header.
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
            Message::Trace { call, context } => {
                w.u64(*call);
                context.write(w);
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
            Message::PassResult { call, blob, to, secret, addresses } => {
                w.u64(*call);
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
            | Message::DropResult { call }
            | Message::Detach { call } => w.u64(*call),
            Message::Detached { call, id } => {
                w.u64(*call);
                w.text(id)?;
            }
            Message::NotDetached { call, error, message } => {
                w.u64(*call);
                w.prose(error);
                w.prose(message);
            }
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

impl Writer<'_> {
    fn outcome(
        &mut self,
        call: u64,
        stamps: Stamps,
        result_leases: &[Lease],
    ) -> Result<(), WireError> {
        self.u64(call);
        self.u64(stamps.received);
        self.u64(stamps.calc_in);
        self.u64(stamps.calc_out);
        self.u64(stamps.cpu);
        self.u64(stamps.callback_time);
        self.u32(stamps.callbacks);
        self.u32(stamps.worker);
        self.u32(stamps.pid);
        self.leases(result_leases)
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
