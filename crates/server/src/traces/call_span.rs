//! Spans of one call.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use gridrpc_client::Profile;
use gridrpc_sys::monotonic_ns;
use gridrpc_wire::TraceContext;

use crate::config::Sampler;
use crate::traces::ended_span::EndedSpan;
use crate::traces::exporter::Tracer;

/// The span of a call that has not ended.
#[derive(Debug)]
pub(crate) struct CallSpan {
    tracer: Arc<Tracer>,
    trace_id: [u8; 16],
    /// The client's span.
    parent: Option<[u8; 8]>,
    /// Ids of the span and its children.
    ids: [[u8; 8]; 3],
    /// Start of the call, by the monotonic clock, ns.
    began: u64,
}

/// How a call ended.
#[derive(Debug)]
pub(crate) struct SpanEnd<'a> {
    /// `module/function`.
    pub(crate) name: &'a str,
    pub(crate) user: &'a str,
    pub(crate) address: &'a str,
    pub(crate) bytes_in: u64,
    /// The result's bytes, or the name of the error.
    pub(crate) outcome: Result<u64, &'a str>,
    /// Times of the call; none: it was never submitted.
    pub(crate) profile: Option<&'a Profile>,
}

impl CallSpan {
    /// Begins the span of a call that is recorded. `context`: the client's span.
    pub(crate) fn begin(tracer: &Arc<Tracer>, context: Option<TraceContext>) -> Option<CallSpan> {
        let Sampler { follows_client, ratio } = tracer.sampler;
        if let Some(context) = context
            && follows_client
            && !context.is_sampled()
        {
            return None;
        }
        // A call is worth more than its trace.
        let random: [u8; 40] = gridrpc_sys::random().ok()?;
        let (new_id, ids) = random.split_first_chunk::<16>()?;
        let trace_id = context.map_or(*new_id, |context| context.trace_id);
        let by_ratio = !(context.is_some() && follows_client);
        if by_ratio && !is_in_ratio(trace_id, ratio) {
            return None;
        }
        let (ids, _) = ids.as_chunks::<8>();
        let ids = [ids[0], ids[1], ids[2]];
        let parent = context.map(|context| context.span_id);
        Some(CallSpan { tracer: Arc::clone(tracer), trace_id, parent, ids, began: monotonic_ns() })
    }

    /// Ends the span and queues it for export.
    pub(crate) fn end(&self, end: &SpanEnd<'_>) {
        let (now, offset) = (monotonic_ns(), clock_offset());
        // Clocks of other hosts differ a little.
        let time = |stamp: u64| offset + stamp.clamp(self.began, now);
        let stamps = end.profile.map(|profile| profile.stamps).unwrap_or_default();
        let has_run = stamps.calc_in != 0 && stamps.calc_out >= stamps.calc_in;
        let worker = end.profile.filter(|profile| profile.pid != 0);
        self.tracer.queue(EndedSpan {
            trace_id: self.trace_id,
            parent: self.parent,
            ids: self.ids,
            name: end.name.to_owned(),
            user: end.user.to_owned(),
            address: end.address.to_owned(),
            bytes_in: end.bytes_in,
            outcome: end.outcome.map_err(str::to_owned),
            worker: worker.map(|profile| (profile.worker, profile.pid)),
            began: offset + self.began,
            ended: offset + now,
            received: if stamps.received == 0 { offset + now } else { time(stamps.received) },
            run: has_run.then(|| (time(stamps.calc_in), time(stamps.calc_out))),
        });
    }
}

/// Time since 1970 at the beginning of the monotonic clock, ns. The best of several readings: this thread may lose its
/// processor between the two clocks.
fn clock_offset() -> u64 {
    let reading = |_| {
        let before = monotonic_ns();
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let between = monotonic_ns() - before;
        let now = before + between / 2;
        (between, (since_1970.as_nanos() as u64).saturating_sub(now))
    };
    (0..3).map(reading).min().map_or(0, |(_, offset)| offset)
}

/// Whether a trace is recorded, by its id: all servers of a trace decide the same.
fn is_in_ratio(trace_id: [u8; 16], ratio: f64) -> bool {
    let (_, low) = trace_id.split_at(8);
    let low = low.iter().fold(0_u64, |value, byte| value << 8 | u64::from(*byte)) >> 1;
    ratio >= 1.0 || (low as f64) < ratio * (1_u64 << 63) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ratio_decides_by_the_trace() {
        let low = |value: u64| {
            let mut id = [7; 16];
            id[8..].copy_from_slice(&value.to_be_bytes());
            id
        };
        assert!(is_in_ratio([0xff; 16], 1.0));
        assert!(!is_in_ratio(low(0), 0.0));
        assert!(is_in_ratio(low(u64::MAX / 4), 0.5));
        assert!(!is_in_ratio(low(u64::MAX / 4 * 3), 0.5));
    }
}
