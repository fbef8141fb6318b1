//! Requests to a directory.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use gridrpc_config::{ServerAddress, credentials_folder};
use gridrpc_http::{HttpClient, HttpError, Trust};
use hyper::{Method, StatusCode, Uri};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
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
        /// The problem.
        error: io::Error,
    },
    /// No connection.
    #[error("directory {url} does not answer: {reason}; start one with `gridrpc directory start`")]
    Unreachable {
        /// Its URL.
        url: String,
        /// The problem.
        reason: String,
    },
    /// No server offers the function.
    #[error("{0}")]
    NotOffered(String),
    /// It refuses the request.
    #[error("directory {url} refuses the request: {reason}")]
    Refused {
        /// Its URL.
        url: String,
        /// The problem.
        reason: String,
    },
    /// There is no such policy.
    #[error("{0}")]
    Policy(String),
}

/// A server that offers a function, as a directory answers.
#[derive(Clone, Debug, Deserialize)]
pub struct ServerOffer {
    /// Where the server listens: `HOST:PORT`.
    pub address: String,
    /// The parameters of the function; none: it is in Python.
    #[serde(default)]
    pub signature: Option<String>,
    /// Number of cores.
    pub cores: u32,
    /// Calls that run or wait, for each core.
    pub load: f64,
    /// Operations per second of a call that runs alone.
    pub speed: f64,
    /// Whether it takes no calls now.
    pub is_full: bool,
    /// Whether it has not been heard for a while.
    pub is_silent: bool,
    /// Time since its last announcement, s.
    pub age: f64,
}

/// A directory elsewhere.
#[derive(Debug)]
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

    /// The servers that offer a function and have an address for clients.
    ///
    /// # Errors
    /// When it does not answer, or there is none.
    pub fn offers(&self, function: &str) -> Result<Vec<ServerOffer>, LookupError> {
        let path = format!("/lookup?function={}&interface=no", encoded(function));
        let offers = self.get(&path)?["offers"].take();
        let mut offers: Vec<ServerOffer> = serde_json::from_value(offers).map_err(|error| {
            let reason = format!("it is no directory: {error}");
            LookupError::Unreachable { url: self.url.clone(), reason }
        })?;
        offers.retain(|offer| is_address(&offer.address));
        Ok(offers)
    }

    /// Its URL.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
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
            Some(why) if status == StatusCode::NOT_FOUND => {
                Err(LookupError::NotOffered(why.to_owned()))
            }
            Some(why) if status != StatusCode::OK => {
                Err(LookupError::Refused { url: self.url.clone(), reason: why.to_owned() })
            }
            _ => Ok(value),
        }
    }
}

fn encoded(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

/// Whether an address is one that a client may connect to: `HOST:PORT` by TLS, without options.
fn is_address(text: &str) -> bool {
    let plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-[]:".contains(&byte));
    let parsed = ServerAddress::parse(text);
    plain
        && parsed.is_some_and(|parsed| {
            matches!(parsed, ServerAddress::Tls { .. }) && parsed.to_string() == text
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_no_options() {
        for good in ["lab:7711", "127.0.0.1:80", "[::1]:7711", "a.b-c.org:1"] {
            assert!(is_address(good), "{good}");
        }
        for bad in ["lab", "/run/x.sock", "a@b:1", "lab:1?trusted=true", "lab:99999", "", "lab:1/x"]
        {
            assert!(!is_address(bad), "{bad}");
        }
    }
}
