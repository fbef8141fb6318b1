//! Answers to requests.

use gridrpc_agent::{RequestError, RequestSections};
use serde::Serialize;

use crate::caller::AccessError;

pub(crate) fn answered(value: &impl Serialize) -> RequestSections {
    // It fails only for maps whose keys are not texts.
    vec![serde_json::to_vec(value).unwrap_or_default()].into()
}

pub(crate) fn failure(error: &str, message: &str) -> RequestError {
    RequestError { error: error.to_owned(), message: message.to_owned(), ..RequestError::default() }
}

pub(crate) fn from_denied(error: AccessError) -> RequestError {
    failure(error.error.name(), &error.message)
}
