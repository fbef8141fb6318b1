//! Options of a server.

use std::time::Duration;

/// Name, limits and time limits of a server.
#[derive(Clone, Debug)]
pub struct Options {
    /// Name in the server's metadata.
    pub name: String,
    /// Version in the server's metadata.
    pub version: String,
    /// Maximum size of a request, also after decompression, bytes.
    pub max_request_bytes: usize,
    /// Maximum number of calls that are received, running or answered at the same time. Further ones are refused.
    pub max_running: usize,
    /// When a refused caller should try again.
    pub retry_after: Duration,
    /// Maximum number of connections. Further ones wait.
    pub max_connections: usize,
    /// Maximum number of connections that have not sent a request yet. A further one closes the oldest, so that
    /// connections that stay silent keep nobody out.
    pub max_pending: usize,
    /// Maximum number of simultaneous requests of an HTTP/2 connection.
    pub max_streams: u32,
    /// Time limit for the TLS handshake and for the headers of a request.
    pub header_timeout: Duration,
    /// Time limit for receiving a request, and for sending its response.
    pub request_timeout: Duration,
    /// How long a shutdown waits for running requests.
    pub grace: Duration,
    /// Origins of web pages that may send requests; `*`: all. Empty: none.
    pub allowed_origins: Vec<String>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            name: "gridrpc".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            max_request_bytes: 256 << 20,
            max_running: 256,
            retry_after: Duration::from_secs(1),
            max_connections: 4096,
            max_pending: 1024,
            max_streams: 128,
            header_timeout: Duration::from_secs(10),
            request_timeout: Duration::from_secs(120),
            grace: Duration::from_secs(10),
            allowed_origins: Vec::new(),
        }
    }
}
