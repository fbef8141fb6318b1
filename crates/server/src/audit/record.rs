//! One line of the audit log.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use gridrpc_wire::TraceContext;
use serde::{Serialize, Serializer};
use time::OffsetDateTime;

/// Longest text in a record, bytes: names come from clients.
const LONGEST: usize = 512;

/// Kinds of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AuditEvent {
    /// A client connected.
    Connect,
    /// A client was not admitted, or may not call a function.
    Refuse,
    /// A call was admitted.
    Call,
    /// A call ended.
    End,
    /// A call exceeded a limit.
    Limit,
    /// A user shared data by name.
    Share,
    /// A user looked up data that is shared by name.
    Use,
    /// Data that was shared by name was removed.
    Unshare,
    /// An administrator changed the server.
    Admin,
    /// Records are missing here.
    Dropped,
}

/// An event of the audit log. Fields without a value are left out.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AuditRecord {
    /// When it happened.
    #[serde(serialize_with = "timestamp")]
    pub time: SystemTime,
    /// What happened.
    pub event: AuditEvent,
    /// Name of the user.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "text")]
    pub user: Option<Arc<str>>,
    /// Address of the client.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "text")]
    pub address: Option<Arc<str>>,
    /// The function, as `module/function`, or the shared data, as `owner/name`.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "text")]
    pub function: Option<Arc<str>>,
    /// The client's span of the call, as a `traceparent`.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "traceparent")]
    pub trace: Option<TraceContext>,
    /// Bytes of arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_in: Option<u64>,
    /// Bytes of results.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_out: Option<u64>,
    /// How long it took; in the log in seconds.
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "seconds",
        rename = "seconds"
    )]
    pub duration: Option<Duration>,
    /// How it ended: `ok`, or the name of an error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Cow<'static, str>>,
    /// Number of missing records.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub records: Option<u64>,
}

impl AuditRecord {
    /// An event that happens now, without any other field.
    #[must_use]
    pub fn now(event: AuditEvent) -> AuditRecord {
        AuditRecord {
            time: SystemTime::now(),
            event,
            user: None,
            address: None,
            function: None,
            trace: None,
            bytes_in: None,
            bytes_out: None,
            duration: None,
            outcome: None,
            records: None,
        }
    }

    /// Shortens texts, so that a queue of records has a bound.
    pub(super) fn shorten(&mut self) {
        let shared = [&mut self.user, &mut self.address, &mut self.function];
        for text in shared.into_iter().flatten() {
            if let Some(short) = shortened(text) {
                *text = short.into();
            }
        }
        if let Some(outcome) = &mut self.outcome
            && let Some(short) = shortened(outcome)
        {
            *outcome = short.into();
        }
    }

    /// Appends it as a line of JSON.
    pub(super) fn append_to(&self, lines: &mut Vec<u8>) {
        let before = lines.len();
        // Texts and numbers always serialize.
        if serde_json::to_writer(&mut *lines, self).is_err() {
            lines.truncate(before);
            return;
        }
        lines.push(b'\n');
    }
}

/// A text that is too long, shortened.
fn shortened(text: &str) -> Option<String> {
    if text.len() <= LONGEST {
        return None;
    }
    let end = (0..=LONGEST).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    Some(format!("{}…", &text[..end]))
}

fn text<S: Serializer>(text: &Option<Arc<str>>, serializer: S) -> Result<S::Ok, S::Error> {
    text.as_deref().serialize(serializer)
}

fn traceparent<S: Serializer>(
    trace: &Option<TraceContext>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match trace {
        Some(trace) => serializer.collect_str(trace),
        None => serializer.serialize_none(),
    }
}

/// RFC 3339 in UTC, with microseconds.
fn timestamp<S: Serializer>(time: &SystemTime, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{}", rfc3339(*time)))
}

pub(crate) fn rfc3339(time: SystemTime) -> String {
    // Beyond the year 9999 there is no such text.
    const LAST: Duration = Duration::from_secs(253_402_300_799);
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().min(LAST);
    let time = OffsetDateTime::UNIX_EPOCH + since;
    let (year, month, day) = (time.year(), u8::from(time.month()), time.day());
    let (hour, minute, second) = time.to_hms();
    let micros = time.microsecond();
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micros:06}Z")
}

fn seconds<S: Serializer>(time: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    time.map(|time| time.as_secs_f64()).serialize(serializer)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(record: &AuditRecord) -> String {
        let mut lines = Vec::new();
        record.append_to(&mut lines);
        String::from_utf8(lines).unwrap()
    }

    #[test]
    fn times_are_in_rfc_3339() {
        let at = |seconds, micros| {
            let since = Duration::from_secs(seconds) + Duration::from_micros(micros);
            rfc3339(SystemTime::UNIX_EPOCH + since)
        };
        assert_eq!(at(0, 0), "1970-01-01T00:00:00.000000Z");
        assert_eq!(at(951_827_696, 7), "2000-02-29T12:34:56.000007Z");
        assert_eq!(at(1_798_761_599, 999_999), "2026-12-31T23:59:59.999999Z");
        assert_eq!(at(u64::MAX >> 2, 0), "9999-12-31T23:59:59.000000Z");
    }

    #[test]
    fn a_record_is_one_line_whatever_its_texts_are() {
        let record = AuditRecord {
            time: SystemTime::UNIX_EPOCH,
            user: Some("ann\n{\"event\":\"admin\"}".into()),
            address: Some("10.0.0.1:4711".into()),
            function: Some("lapack/dgesv".into()),
            trace: TraceContext::new([1; 16], [2; 8], 1),
            bytes_in: Some(800),
            bytes_out: Some(80),
            duration: Some(Duration::from_millis(1500)),
            outcome: Some("ok".into()),
            ..AuditRecord::now(AuditEvent::End)
        };
        assert_eq!(
            line(&record),
            "{\"time\":\"1970-01-01T00:00:00.000000Z\",\"event\":\"end\",\
             \"user\":\"ann\\n{\\\"event\\\":\\\"admin\\\"}\",\"address\":\"10.0.0.1:4711\",\
             \"function\":\"lapack/dgesv\",\
             \"trace\":\"00-01010101010101010101010101010101-0202020202020202-01\",\"bytes_in\":800,\"bytes_out\":80,\"seconds\":1.5,\
             \"outcome\":\"ok\"}\n"
        );
    }

    #[test]
    fn fields_without_a_value_are_left_out() {
        let record =
            AuditRecord { time: SystemTime::UNIX_EPOCH, ..AuditRecord::now(AuditEvent::Connect) };
        let expected = "{\"time\":\"1970-01-01T00:00:00.000000Z\",\"event\":\"connect\"}\n";
        assert_eq!(line(&record), expected);
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        let mut record = AuditRecord::now(AuditEvent::Refuse);
        record.user = Some(format!("x{}", "é".repeat(1000)).into());
        record.function = Some("y".repeat(LONGEST).into());
        record.outcome = Some("z".repeat(LONGEST + 1).into());
        record.shorten();
        assert_eq!(*record.user.unwrap(), *format!("x{}…", "é".repeat(255)));
        assert_eq!(record.function.unwrap().len(), LONGEST);
        assert_eq!(record.outcome.unwrap(), format!("{}…", "z".repeat(LONGEST)));
    }
}
