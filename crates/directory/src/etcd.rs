//! Client of one member of etcd, by its JSON gateway.

use std::str::FromStr;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::{Bytes, BytesMut};
use gridrpc_http::{HttpClient, HttpError};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::{Method, StatusCode, Uri};
use serde::Deserialize;
use serde_json::{Value, json};
use thiserror::Error;
use tokio::time::timeout;

/// Time limit of a request. A member that cannot reach the others answers none.
const TIMEOUT: Duration = Duration::from_secs(3);
/// Keys in one answer.
const PAGE: usize = 256;
/// Longest event, bytes: etcd limits a request to 1.5 MB by default, and base64 adds a third.
const LONGEST_EVENT: usize = 32 << 20;
const JSON: &str = "application/json";

/// The URL of a member.
#[derive(Clone, Debug)]
pub struct EtcdMember(pub(crate) Uri);

impl FromStr for EtcdMember {
    type Err = String;

    fn from_str(text: &str) -> Result<EtcdMember, String> {
        let url = text.trim().parse::<Uri>().ok().filter(|url| {
            matches!(url.scheme_str(), Some("http" | "https"))
                && url.host().is_some()
                && matches!(url.path(), "" | "/")
                && url.query().is_none()
        });
        let example = "write http://HOST:PORT or https://HOST:PORT, as in http://localhost:2379";
        url.map(EtcdMember).ok_or_else(|| example.into())
    }
}

/// Why a member has not answered.
#[derive(Debug, Error)]
pub enum EtcdError {
    /// No connection, or it is lost.
    #[error(transparent)]
    Http(#[from] HttpError),
    /// No answer in time.
    #[error("no answer within {} s", TIMEOUT.as_secs())]
    Timeout,
    /// The member refuses the request.
    #[error("it answers {status}: {message}")]
    Refused {
        /// The status.
        status: StatusCode,
        /// Its message.
        message: String,
    },
    /// The answer is not one of etcd.
    #[error("it does not answer as etcd 3.4 and later do: {0}")]
    Malformed(String),
    /// The lease has ended.
    #[error("its lease has ended")]
    LeaseEnded,
    /// The member ends a watch.
    #[error("the watch has ended: {0}")]
    WatchEnded(String),
}

impl EtcdError {
    /// Whether the request itself is too large, so that no member takes it.
    pub fn is_too_large(&self) -> bool {
        matches!(self, EtcdError::Refused { message, .. } if message.contains("too large"))
    }
}

/// State of etcd at an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// The cluster. Another one has other data.
    pub cluster: u64,
    /// The revision: the number of changes.
    pub revision: i64,
}

/// A key and its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyValue {
    pub key: String,
    pub value: Vec<u8>,
    /// Revision of its last change.
    pub revision: i64,
}

/// A change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    Put(KeyValue),
    Deleted(String),
}

/// A key to write.
#[derive(Clone, Debug)]
pub struct Put {
    pub key: String,
    pub value: String,
    /// Its lease.
    pub lease: Option<i64>,
}

/// A member of etcd.
pub struct EtcdClient {
    http: HttpClient,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RawHeader {
    cluster_id: Number,
    revision: Number,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RawKeyValue {
    key: String,
    value: String,
    mod_revision: Number,
}

/// A 64-bit number, which JSON gateways write as a text.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(transparent)]
struct Number(Value);

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RangeAnswer {
    header: RawHeader,
    kvs: Vec<RawKeyValue>,
    more: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct WatchAnswer {
    result: WatchResult,
    error: Value,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct WatchResult {
    canceled: bool,
    cancel_reason: String,
    compact_revision: Number,
    events: Vec<RawEvent>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RawEvent {
    r#type: String,
    kv: RawKeyValue,
}

impl Number {
    fn signed(&self) -> i64 {
        self.0.as_i64().or_else(|| self.0.as_str()?.parse().ok()).unwrap_or(0)
    }

    fn unsigned(&self) -> u64 {
        self.0.as_u64().or_else(|| self.0.as_str()?.parse().ok()).unwrap_or(0)
    }
}

impl From<RawHeader> for Header {
    fn from(raw: RawHeader) -> Header {
        Header { cluster: raw.cluster_id.unsigned(), revision: raw.revision.signed() }
    }
}

impl TryFrom<RawKeyValue> for KeyValue {
    type Error = EtcdError;

    fn try_from(raw: RawKeyValue) -> Result<KeyValue, EtcdError> {
        let decode = |text: &str| {
            STANDARD.decode(text).map_err(|error| EtcdError::Malformed(error.to_string()))
        };
        let key = String::from_utf8(decode(&raw.key)?)
            .map_err(|error| EtcdError::Malformed(error.to_string()))?;
        Ok(KeyValue { key, value: decode(&raw.value)?, revision: raw.mod_revision.signed() })
    }
}

fn encoded(text: &str) -> String {
    STANDARD.encode(text)
}

/// The first key after all those with a prefix.
fn end_of(prefix: &str) -> Vec<u8> {
    let mut end = prefix.as_bytes().to_vec();
    // Bytes of UTF-8 are below 0xff.
    if let Some(last) = end.last_mut() {
        *last += 1;
    }
    end
}

impl EtcdClient {
    /// A client for the member that `http` reaches.
    pub fn new(http: HttpClient) -> EtcdClient {
        EtcdClient { http }
    }

    /// The URL of the member.
    pub fn url(&self) -> String {
        self.http.url().to_string().trim_end_matches('/').to_owned()
    }

    async fn post(&self, path: &str, body: &Value) -> Result<Value, EtcdError> {
        let body = Bytes::from(body.to_string());
        let request = self.http.request(Method::POST, path, JSON, body);
        let (status, body) = timeout(TIMEOUT, request).await.map_err(|_| EtcdError::Timeout)??;
        if status != StatusCode::OK {
            return Err(refused(status, &body));
        }
        serde_json::from_slice(&body).map_err(|error| EtcdError::Malformed(error.to_string()))
    }

    /// All keys with a prefix. Without their values if `keys_only`.
    pub async fn list(
        &self,
        prefix: &str,
        keys_only: bool,
    ) -> Result<(Header, Vec<KeyValue>), EtcdError> {
        let (mut all, mut from) = (Vec::new(), prefix.to_owned());
        let mut header: Option<Header> = None;
        loop {
            let mut request = json!({
                "key": encoded(&from),
                "range_end": STANDARD.encode(end_of(prefix)),
                "limit": PAGE.to_string(),
                "keys_only": keys_only,
            });
            if let Some(header) = header {
                // All pages are of one state.
                request["revision"] = json!(header.revision.to_string());
            }
            let answer = self.post("/v3/kv/range", &request).await?;
            let answer: RangeAnswer = parsed(answer)?;
            header = header.or_else(|| Some(answer.header.into()));
            for raw in answer.kvs {
                all.push(KeyValue::try_from(raw)?);
            }
            match all.last() {
                Some(last) if answer.more => from = format!("{}\0", last.key),
                _ => return Ok((header.unwrap_or_default(), all)),
            }
        }
    }

    /// The value of a key.
    pub async fn get(&self, key: &str) -> Result<Option<KeyValue>, EtcdError> {
        let answer = self.post("/v3/kv/range", &json!({ "key": encoded(key) })).await?;
        let answer: RangeAnswer = parsed(answer)?;
        answer.kvs.into_iter().next().map(KeyValue::try_from).transpose()
    }

    /// Writes keys at once. Returns the revision.
    pub async fn put(&self, puts: &[Put]) -> Result<i64, EtcdError> {
        let one = |put: &Put| {
            let lease = put.lease.unwrap_or(0).to_string();
            json!({ "request_put": {
                "key": encoded(&put.key), "value": encoded(&put.value), "lease": lease,
            } })
        };
        let success: Vec<Value> = puts.iter().map(one).collect();
        let answer = self.post("/v3/kv/txn", &json!({ "success": success })).await?;
        let header: RawHeader = parsed(answer["header"].clone())?;
        Ok(Header::from(header).revision)
    }

    /// Deletes a key.
    pub async fn delete(&self, key: &str) -> Result<(), EtcdError> {
        self.post("/v3/kv/deleterange", &json!({ "key": encoded(key) })).await.map(|_| ())
    }

    /// Grants a lease. Returns its number.
    pub async fn grant(&self, lifetime: Duration) -> Result<i64, EtcdError> {
        let request = json!({ "TTL": lifetime.as_secs().to_string() });
        let answer = self.post("/v3/lease/grant", &request).await?;
        match Number(answer["ID"].clone()).signed() {
            0 => Err(EtcdError::Malformed(format!("a lease without a number: {answer}"))),
            lease => Ok(lease),
        }
    }

    /// Extends a lease.
    pub async fn keep_alive(&self, lease: i64) -> Result<(), EtcdError> {
        let request = json!({ "ID": lease.to_string() });
        let answer = self.post("/v3/lease/keepalive", &request).await?;
        if Number(answer["result"]["TTL"].clone()).signed() > 0 {
            Ok(())
        } else {
            Err(EtcdError::LeaseEnded)
        }
    }

    /// Ends a lease, and all keys with it.
    pub async fn revoke(&self, lease: i64) -> Result<(), EtcdError> {
        let request = json!({ "ID": lease.to_string() });
        self.post("/v3/lease/revoke", &request).await.map(|_| ())
    }

    /// Watches all keys with a prefix from this revision on.
    pub async fn watch(&self, prefix: &str, from: i64) -> Result<Watch, EtcdError> {
        let request = json!({ "create_request": {
            "key": encoded(prefix),
            "range_end": STANDARD.encode(end_of(prefix)),
            "start_revision": from.to_string(),
        } });
        let body = Bytes::from(request.to_string());
        let request = self.http.stream(Method::POST, "/v3/watch", JSON, body);
        let (status, body) = timeout(TIMEOUT, request).await.map_err(|_| EtcdError::Timeout)??;
        if status != StatusCode::OK {
            return Err(refused(status, b"the watch is refused"));
        }
        Ok(Watch { body, buffer: BytesMut::new() })
    }
}

fn parsed<T: for<'d> Deserialize<'d>>(value: Value) -> Result<T, EtcdError> {
    serde_json::from_value(value).map_err(|error| EtcdError::Malformed(error.to_string()))
}

fn refused(status: StatusCode, body: &[u8]) -> EtcdError {
    let value: Value = serde_json::from_slice(body).unwrap_or_default();
    let detail = ["message", "error"].iter().find_map(|key| value[key].as_str());
    let message = detail.map_or_else(|| String::from_utf8_lossy(body).into_owned(), str::to_owned);
    EtcdError::Refused { status, message: message.trim().chars().take(300).collect() }
}

/// Changes of keys, as they happen.
pub struct Watch {
    body: Incoming,
    buffer: BytesMut,
}

impl Watch {
    /// The next changes; none, if the member only reports that it is there.
    ///
    /// # Errors
    /// When the watch has ended. Nothing is lost if it is not awaited to its end.
    pub async fn next(&mut self) -> Result<Vec<Event>, EtcdError> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line = self.buffer.split_to(end + 1);
                return events(&line);
            }
            if self.buffer.len() > LONGEST_EVENT {
                return Err(EtcdError::Malformed("an event is too long".into()));
            }
            match self.body.frame().await {
                None => return Err(EtcdError::WatchEnded("the connection is closed".into())),
                Some(frame) => {
                    if let Ok(data) = frame.map_err(HttpError::Http)?.into_data() {
                        self.buffer.extend_from_slice(&data);
                    }
                }
            }
        }
    }
}

fn events(line: &[u8]) -> Result<Vec<Event>, EtcdError> {
    let answer: WatchAnswer =
        serde_json::from_slice(line).map_err(|error| EtcdError::Malformed(error.to_string()))?;
    if !answer.error.is_null() {
        return Err(EtcdError::WatchEnded(answer.error.to_string()));
    }
    let WatchResult { canceled, cancel_reason, compact_revision, events } = answer.result;
    if canceled || compact_revision.signed() > 0 {
        return Err(EtcdError::WatchEnded(cancel_reason));
    }
    let event = |raw: RawEvent| {
        let kv = KeyValue::try_from(raw.kv)?;
        Ok(if raw.r#type == "DELETE" { Event::Deleted(kv.key) } else { Event::Put(kv) })
    };
    events.into_iter().map(event).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_as_the_gateway_writes_them() {
        let line = br#"{"result":{"header":{"revision":"5"},"events":[{"kv":{"key":"L2E=","mod_revision":"5","value":"eA=="}},{"type":"DELETE","kv":{"key":"L2I=","mod_revision":"6"}}]}}"#;
        let put = KeyValue { key: "/a".into(), value: b"x".to_vec(), revision: 5 };
        assert_eq!(events(line).unwrap(), [Event::Put(put), Event::Deleted("/b".into())]);
        assert_eq!(events(br#"{"result":{"created":true}}"#).unwrap(), []);
    }

    #[test]
    fn ends_and_other_texts_are_errors() {
        for line in [
            &br#"{"error":{"message":"gone"}}"#[..],
            br#"{"result":{"canceled":true,"compact_revision":"9"}}"#,
            br#"{"result":{"events":[{"kv":{"key":"%"}}]}}"#,
            b"<html>",
            b"",
        ] {
            assert!(events(line).is_err(), "{}", String::from_utf8_lossy(line));
        }
    }

    #[test]
    fn the_end_of_a_prefix_is_behind_its_keys() {
        assert_eq!(end_of("/grid/"), b"/grid0");
    }
}
