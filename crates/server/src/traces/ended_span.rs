//! A call that has ended, as spans of the OpenTelemetry protocol.

use crate::traces::otlp::{OtlpSpan, SpanKind, Status, text, whole};

/// A call that has ended, in the queue of the exporter.
#[derive(Debug)]
pub(super) struct EndedSpan {
    pub(super) trace_id: [u8; 16],
    /// The client's span.
    pub(super) parent: Option<[u8; 8]>,
    /// Ids of the span and its children.
    pub(super) ids: [[u8; 8]; 3],
    /// `module/function`.
    pub(super) name: String,
    pub(super) user: String,
    pub(super) address: String,
    pub(super) bytes_in: u64,
    /// The result's bytes, or the name of the error.
    pub(super) outcome: Result<u64, String>,
    /// Number and process id of the worker.
    pub(super) worker: Option<(u32, u32)>,
    /// Times since 1970, ns.
    pub(super) began: u64,
    pub(super) ended: u64,
    /// When a worker had the call, or its end if none had.
    pub(super) received: u64,
    /// When the function started and returned, if it ran.
    pub(super) run: Option<(u64, u64)>,
}

impl EndedSpan {
    /// Number of its spans.
    pub(super) fn count(&self) -> u64 {
        2 + u64::from(self.run.is_some())
    }

    /// Its spans: the call, and below it the time in the queue and the run of the function.
    pub(super) fn into_spans(self) -> impl Iterator<Item = OtlpSpan> {
        let [id, queue_id, run_id] = self.ids;
        let (module, function) = self.name.split_once('/').unwrap_or(("", &self.name));
        let mut attributes = vec![
            text("rpc.system", "gridrpc"),
            text("rpc.method", function),
            text("enduser.id", &self.user),
            text("client.address", &self.address),
            whole("gridrpc.bytes_in", self.bytes_in),
        ];
        if !module.is_empty() {
            attributes.push(text("rpc.service", module));
        }
        let status = match &self.outcome {
            Ok(bytes) => {
                attributes.push(text("gridrpc.outcome", "ok"));
                attributes.push(whole("gridrpc.bytes_out", *bytes));
                None
            }
            Err(error) => {
                attributes.push(text("gridrpc.outcome", error));
                attributes.push(text("error.type", error));
                Some(Status::error(error))
            }
        };
        let span =
            |id: [u8; 8], parent: Option<[u8; 8]>, name: &str, kind: SpanKind, from, to| OtlpSpan {
                trace_id: self.trace_id.to_vec(),
                span_id: id.to_vec(),
                parent_span_id: parent.map_or_else(Vec::new, |parent| parent.to_vec()),
                name: name.to_owned(),
                kind: kind.into(),
                start_time_unix_nano: from,
                end_time_unix_nano: to,
                ..OtlpSpan::default()
            };
        let call = OtlpSpan {
            attributes,
            status,
            ..span(id, self.parent, &self.name, SpanKind::Server, self.began, self.ended)
        };
        let internal = SpanKind::Internal;
        let queue = span(queue_id, Some(id), "queue", internal, self.began, self.received);
        let run = self.run.map(|(from, to)| {
            let worker = self.worker.map(|(worker, pid)| {
                vec![whole("gridrpc.worker", worker.into()), whole("process.pid", pid.into())]
            });
            let attributes = worker.unwrap_or_default();
            OtlpSpan { attributes, ..span(run_id, Some(id), "run", internal, from, to) }
        });
        [call, queue].into_iter().chain(run)
    }
}
