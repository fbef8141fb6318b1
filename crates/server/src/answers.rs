//! Answers to requests.

use std::fmt::Write as _;

use gridrpc_agent::{Denied, RequestError};
use serde_json::Value;

pub(crate) fn answered(value: &Value) -> Vec<Vec<u8>> {
    let mut text = String::new();
    // Writing to a text cannot fail.
    let _ = write!(text, "{value}");
    vec![text.into_bytes()]
}

pub(crate) fn failure(error: &str, message: &str) -> RequestError {
    RequestError { error: error.to_owned(), message: message.to_owned(), ..RequestError::default() }
}

pub(crate) fn from_denied(denied: Denied) -> RequestError {
    failure(&denied.error, &denied.message)
}
