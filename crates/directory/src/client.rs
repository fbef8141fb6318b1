//! Client of a directory, for the command `gridrpc directory`.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use gridrpc_config::credentials_folder;
use gridrpc_server::http_client::{HttpClient, HttpError, Trust};
use hyper::{Method, StatusCode, Uri};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use thiserror::Error;
use tokio::runtime::Builder;
use tokio::time::timeout;

/// Time limit of a request.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Why a directory has not answered.
#[derive(Debug, Error)]
pub enum LookupError {
    /// The URL is malformed.
    #[error("`{0}` is no URL of a directory: write https://HOST:PORT, or http://localhost:PORT")]
    Url(String),
    /// The credentials cannot be used.
    #[error("the credentials for directory {url} cannot be used: {error}")]
    Credentials {
        /// Its URL.
        url: String,
        /// What is wrong.
        error: io::Error,
    },
    /// No connection.
    #[error("directory {url} does not answer: {reason}; start one with `gridrpc directory start`")]
    Unreachable {
        /// Its URL.
        url: String,
        /// What is wrong.
        reason: String,
    },
    /// It refuses the request, or knows no such function.
    #[error("{0}")]
    Refused(String),
}

/// A directory elsewhere.
pub struct DirectoryClient {
    url: String,
    http: HttpClient,
}

impl DirectoryClient {
    /// A client for the directory at this URL. `credentials`: folder with a user's certificate; none: the usual one.
    ///
    /// # Errors
    /// When the URL is malformed, or the credentials cannot be used.
    pub fn new(url: &str, credentials: Option<PathBuf>) -> Result<DirectoryClient, LookupError> {
        let malformed = || LookupError::Url(url.to_owned());
        let uri: Uri = url.parse().map_err(|_| malformed())?;
        if !matches!(uri.scheme_str(), Some("http" | "https")) || uri.host().is_none() {
            return Err(malformed());
        }
        let folder = credentials.or_else(credentials_folder).unwrap_or_else(|| PathBuf::from("."));
        let url = url.to_owned();
        match HttpClient::new(&uri, Trust::Credentials(&folder)) {
            Ok(http) => Ok(DirectoryClient { url, http }),
            Err(error) => Err(LookupError::Credentials { url, error }),
        }
    }

    /// The state of the directory and of all servers.
    ///
    /// # Errors
    /// When it does not answer.
    pub fn status(&self) -> Result<Value, LookupError> {
        self.get("/status")
    }

    /// The functions with all words of a text in names and descriptions.
    ///
    /// # Errors
    /// When it does not answer.
    pub fn search(&self, text: &str) -> Result<Value, LookupError> {
        self.get(&format!("/functions?search={}", encoded(text)))
    }

    /// The servers that offer a function.
    ///
    /// # Errors
    /// When it does not answer, or there is none.
    pub fn lookup(&self, function: &str) -> Result<Value, LookupError> {
        self.get(&format!("/lookup?function={}", encoded(function)))
    }

    fn get(&self, path: &str) -> Result<Value, LookupError> {
        let failed = |reason: String| LookupError::Unreachable { url: self.url.clone(), reason };
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| failed(error.to_string()))?;
        let answer: Result<Result<_, HttpError>, _> = runtime.block_on(async {
            let request = self.http.request(Method::GET, path, "application/json", Bytes::new());
            timeout(TIMEOUT, request).await
        });
        let (status, body) = answer
            .map_err(|_| failed(format!("it took longer than {} s", TIMEOUT.as_secs())))?
            .map_err(|error| failed(error.to_string()))?;
        let value: Value = serde_json::from_slice(&body)
            .map_err(|error| failed(format!("it is no directory: {error}")))?;
        match value["error"].as_str() {
            Some(why) if status != StatusCode::OK => Err(LookupError::Refused(why.to_owned())),
            _ => Ok(value),
        }
    }
}

fn encoded(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}
