//! Errors of `gridrpc top`, and output to standard output.

use std::io::{self, Write as _};

use gridrpc_client::live::place::SnapshotError;
use thiserror::Error;

use super::choice::ChoiceError;
use crate::server::CommandError;
use crate::server_query::ServerQueryError;

/// Why nothing is shown.
#[derive(Debug, Error)]
pub enum TopError {
    /// No single grid is selected, or it cannot be accessed.
    #[error(transparent)]
    Choice(#[from] ChoiceError),
    /// The grid does not report statistics.
    #[error("the grid of process {0}: {1}")]
    Look(String, SnapshotError),
    /// The server does not answer.
    #[error(transparent)]
    Control(#[from] CommandError),
    /// The server does not answer.
    #[error(transparent)]
    Server(Box<ServerQueryError>),
    /// The page cannot be served.
    #[error("the page cannot be served at port {0} of 127.0.0.1: {1}")]
    Port(u16, io::Error),
    /// The page's token is unavailable.
    #[error("the token of the page, in `{0}`: {1}")]
    Token(String, io::Error),
    /// The system refused an operation.
    #[error("{0}: {1}")]
    System(&'static str, io::Error),
}

impl From<ServerQueryError> for TopError {
    fn from(error: ServerQueryError) -> TopError {
        TopError::Server(Box::new(error))
    }
}

pub(super) fn print(text: &str) -> Result<(), TopError> {
    let mut output = io::stdout().lock();
    let written = output.write_all(text.as_bytes()).and_then(|()| output.flush());
    written.map_err(|error| TopError::System("writing to standard output", error))
}
