//! Context of a trace, as W3C Trace Context defines it.

use std::fmt;
use std::str::FromStr;

use crate::bytes::{Reader, WireError, Writer};

/// The span that a call belongs to: a span of the calling program.
///
/// As text, it is the value of a header `traceparent`, version 00.
///
/// ```
/// use gridrpc_wire::TraceContext;
///
/// let text = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
/// let context: TraceContext = text.parse().unwrap();
/// assert!(context.is_sampled());
/// assert_eq!(context.to_string(), text);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TraceContext {
    /// Id of the trace; not all zero.
    pub trace_id: [u8; 16],
    /// Id of the span; not all zero.
    pub span_id: [u8; 8],
    /// Flags; bit 0: the trace is sampled.
    pub flags: u8,
}

/// A text that is not a valid `traceparent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a valid `traceparent`")]
pub struct TraceContextError;

impl TraceContext {
    /// Creates a context. None: an id is all zero, which the standard forbids.
    #[must_use]
    pub fn new(trace_id: [u8; 16], span_id: [u8; 8], flags: u8) -> Option<TraceContext> {
        let is_valid = trace_id != [0; 16] && span_id != [0; 8];
        is_valid.then_some(TraceContext { trace_id, span_id, flags })
    }

    /// Whether the calling program records the trace.
    #[must_use]
    pub fn is_sampled(&self) -> bool {
        self.flags & 1 == 1
    }

    pub(crate) fn read(r: &mut Reader<'_>) -> Result<TraceContext, WireError> {
        let (mut trace_id, mut span_id) = ([0; 16], [0; 8]);
        trace_id.copy_from_slice(r.bytes(16, "trace_id")?);
        span_id.copy_from_slice(r.bytes(8, "span_id")?);
        let flags = r.u8("flags")?;
        let what = if trace_id == [0; 16] { "trace_id" } else { "span_id" };
        TraceContext::new(trace_id, span_id, flags).ok_or(WireError::Meaningless { what, value: 0 })
    }

    pub(crate) fn write(&self, w: &mut Writer<'_>) {
        w.out.extend_from_slice(&self.trace_id);
        w.out.extend_from_slice(&self.span_id);
        w.u8(self.flags);
    }
}

impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (trace, span) = (u128::from_be_bytes(self.trace_id), u64::from_be_bytes(self.span_id));
        write!(f, "00-{trace:032x}-{span:016x}-{:02x}", self.flags)
    }
}

impl FromStr for TraceContext {
    type Err = TraceContextError;

    /// Reads the value of a header `traceparent`. Later versions may have further fields, which are ignored.
    fn from_str(text: &str) -> Result<TraceContext, TraceContextError> {
        parse(text).ok_or(TraceContextError)
    }
}

fn parse(text: &str) -> Option<TraceContext> {
    let mut fields = text.trim().split('-');
    let version = number(fields.next()?, 2)?;
    let trace_id = number(fields.next()?, 32)?;
    let span_id = number(fields.next()?, 16)? as u64;
    let flags = number(fields.next()?, 2)? as u8;
    let has_more = fields.next().is_some();
    if version == 0xff || (version == 0 && has_more) {
        return None;
    }
    TraceContext::new(trace_id.to_be_bytes(), span_id.to_be_bytes(), flags)
}

/// The number with this many hexadecimal digits in lower case.
fn number(text: &str, digits: usize) -> Option<u128> {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let is_valid = text.len() == digits && text.bytes().all(is_digit);
    is_valid.then(|| u128::from_str_radix(text, 16).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_texts_are_refused() {
        let valid = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";
        assert_eq!(valid.parse::<TraceContext>().map(|context| context.is_sampled()), Ok(false));
        let later = "cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-what-comes";
        assert!(later.parse::<TraceContext>().is_ok());
        for invalid in [
            "",
            "00",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
            "00-+af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319-b7ad6b71692033311-01",
        ] {
            assert_eq!(invalid.parse::<TraceContext>(), Err(TraceContextError), "{invalid}");
        }
    }
}
