//! Traces of calls, exported to a collector by the OpenTelemetry protocol.

mod call_span;
mod ended_span;
mod exporter;
mod otlp;

pub(crate) use call_span::{CallSpan, SpanEnd};
pub(crate) use exporter::Tracer;
