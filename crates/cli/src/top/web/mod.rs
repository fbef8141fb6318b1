//! `gridrpc top --web`: a web page about running grids, for this machine only, and Prometheus metrics.
//!
//! Other users can also connect to the loopback address, so each request needs the token from the printed
//! URL. Idle connections cannot block others: each has a deadline, and the oldest is closed when there are
//! too many. Pages of other sites cannot read the data: requests under a host name other than this machine's
//! are refused.

mod metrics;
mod request;
mod token;

use std::collections::VecDeque;
use std::io::{self, Write as _};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use clap::Args;
use gridrpc_server::{exposition, page};
use gridrpc_sys::timed_stream::TimedStream;
use serde_json::json;

use crate::top::choice::{GridSelector, all_stats};
use crate::top::error::{TopError, print};
use crate::top::signals::{Signals, TerminalEvent};
use request::{Refused, WebRequest, path_of};
use token::Token;

const PAGE: &str = include_str!("page.html");
const SCRIPT: &str = include_str!("page.js");

/// How long a browser may take to send a request and to receive the answer.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);
/// Most connections without a complete request.
const MOST_ASKING: usize = 32;
/// Most concurrent connections.
const MOST: usize = 4 * MOST_ASKING;
/// Timeout of one wait for signals; the wait then repeats.
const LONG: Duration = Duration::from_secs(3600);

/// Who is to be served.
#[derive(Debug, Args)]
pub(super) struct Access {
    /// With --web: the token of the page's address is the one in FILE. If there is no such file, a new token is
    /// written there
    #[arg(long, value_name = "FILE", requires = "web", conflicts_with_all = ["once", "json"])]
    token_file: Option<PathBuf>,
    /// With --web: serve all users of this machine, without a token
    #[arg(long, requires = "web", conflicts_with_all = ["once", "json", "token_file"])]
    no_token: bool,
}

impl Access {
    fn token(&self) -> Result<Option<Token>, TopError> {
        let token = match &self.token_file {
            _ if self.no_token => return Ok(None),
            Some(file) => {
                let wrong = |error| TopError::Token(file.display().to_string(), error);
                Token::read_or_create(file).map_err(wrong)?
            }
            None => Token::random().map_err(|error| TopError::System("random numbers", error))?,
        };
        Ok(Some(token))
    }
}

/// The served grids and the access token.
struct Served {
    wanted: Option<GridSelector>,
    token: Option<Token>,
}

impl Served {
    /// The query string for a path.
    fn query(&self) -> String {
        self.token.as_ref().map_or_else(String::new, |token| format!("?token={}", token.text()))
    }

    fn admits(&self, web_request: &WebRequest) -> bool {
        self.token
            .as_ref()
            .is_none_or(|token| web_request.tokens.iter().any(|given| token.is(given)))
    }
}

/// A response.
struct Answer {
    status: &'static str,
    kind: &'static str,
    text: String,
}

impl Answer {
    fn ok(kind: &'static str, text: impl Into<String>) -> Answer {
        Answer { status: "200 OK", kind, text: text.into() }
    }

    fn refused(status: &'static str, why: &str) -> Answer {
        Answer { status, kind: "text/plain; charset=utf-8", text: format!("{why}\n") }
    }

    /// The bytes of the response. The page loads only resources from here, and nothing is cached.
    fn bytes(&self, with_text: bool) -> Vec<u8> {
        let Answer { status, kind, text } = self;
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\
             Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n\
             Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; \
             connect-src 'self'; img-src data:; frame-ancestors 'none'\r\n\r\n",
            text.len()
        );
        let mut bytes = head.into_bytes();
        if with_text {
            bytes.extend_from_slice(text.as_bytes());
        }
        bytes
    }
}

/// Serves the page until the user ends it.
///
/// # Errors
/// When the port or the token is unavailable.
pub(super) fn serve(
    port: u16,
    wanted: Option<GridSelector>,
    access: &Access,
) -> Result<(), TopError> {
    let served = Served { wanted, token: access.token()? };
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))
        .map_err(|error| TopError::Port(port, error))?;
    let address = listener.local_addr().map_err(|error| TopError::Port(port, error))?;
    // Before any thread starts, so that all threads block these signals.
    let signals = Signals::new().map_err(|error| TopError::System("signals", error))?;
    let page = format!("http://{address}/{}\n", served.query());
    let accept = move || accept(&listener, &Arc::new(served));
    std::thread::Builder::new()
        .name("gridrpc-web".into())
        .spawn(accept)
        .map_err(|error| TopError::System("starting a thread", error))?;
    print(&page)?;
    while signals.wait(LONG, false).map_err(|error| TopError::System("waiting", error))?
        != TerminalEvent::End
    {}
    Ok(())
}

/// Connections without a complete request, oldest first.
#[derive(Default)]
struct PendingRequests(Mutex<VecDeque<Arc<TcpStream>>>);

impl PendingRequests {
    fn lock(&self) -> MutexGuard<'_, VecDeque<Arc<TcpStream>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a connection and, if there are too many, closes the oldest: browsers send requests at once.
    fn add(&self, stream: &Arc<TcpStream>) {
        let mut all = self.lock();
        all.push_back(Arc::clone(stream));
        if all.len() > MOST_ASKING
            && let Some(oldest) = all.pop_front()
        {
            // Its thread notices the shutdown.
            let _ = oldest.shutdown(Shutdown::Both);
        }
    }

    fn remove(&self, stream: &Arc<TcpStream>) {
        self.lock().retain(|other| !Arc::ptr_eq(other, stream));
    }
}

fn accept(listener: &TcpListener, served: &Arc<Served>) {
    let (open, asking) = (Arc::new(AtomicUsize::new(0)), Arc::new(PendingRequests::default()));
    for stream in listener.incoming() {
        let Ok(stream) = stream else {
            // Most likely out of file descriptors; wait for other connections to end.
            std::thread::sleep(Duration::from_millis(50));
            continue;
        };
        if open.load(Ordering::Relaxed) >= MOST {
            continue;
        }
        open.fetch_add(1, Ordering::Relaxed);
        let stream = Arc::new(stream);
        asking.add(&stream);
        let (now, served) = (Arc::clone(&open), Arc::clone(served));
        let (its, all) = (Arc::clone(&stream), Arc::clone(&asking));
        let run = move || {
            // A client that has disconnected gets no answer.
            let _ = answer(&its, &all, &served);
            now.fetch_sub(1, Ordering::Relaxed);
        };
        if std::thread::Builder::new().name("gridrpc-web".into()).spawn(run).is_err() {
            open.fetch_sub(1, Ordering::Relaxed);
            asking.remove(&stream);
        }
    }
}

fn answer(stream: &Arc<TcpStream>, asking: &PendingRequests, served: &Served) -> io::Result<()> {
    let web_request = path_of(&mut TimedStream::new(&**stream, HANDSHAKE_TIMEOUT));
    asking.remove(stream);
    let (answer, with_text) = match web_request? {
        Ok(web_request) if served.admits(&web_request) => {
            (ok(&web_request.path, served), !web_request.head_only)
        }
        Ok(web_request) => {
            let why = "this address lacks its token, or has another one: open the address that \
                       `gridrpc top --web` has printed in the terminal where it runs, with all \
                       that follows ?token=";
            (Answer::refused("403 Forbidden", why), !web_request.head_only)
        }
        Err(Refused::Malformed) => (Answer::refused("400 Bad Request", "this is no request"), true),
        Err(Refused::Method) => {
            (Answer::refused("405 Method Not Allowed", "only GET is served"), true)
        }
        Err(Refused::Host) => {
            let why = "ask for this page as localhost or 127.0.0.1";
            (Answer::refused("421 Misdirected Request", why), true)
        }
    };
    TimedStream::new(&**stream, HANDSHAKE_TIMEOUT).write_all(&answer.bytes(with_text))
}

fn ok(path: &str, served: &Served) -> Answer {
    let all_grids = || all_stats(served.wanted.as_ref());
    match path {
        // The resources of the page need the token as well.
        "/" => Answer::ok("text/html; charset=utf-8", PAGE.replace("{query}", &served.query())),
        "/page.css" => Answer::ok("text/css; charset=utf-8", page::STYLE),
        "/formats.js" => Answer::ok(page::JAVASCRIPT, page::FORMATS),
        "/page.js" => Answer::ok(page::JAVASCRIPT, SCRIPT),
        "/stats" => {
            let text = json!({ "grids": all_grids() }).to_string();
            Answer::ok("application/json", text)
        }
        "/metrics" => {
            let text = metrics::exposition(&all_grids());
            Answer::ok(exposition::CONTENT_TYPE, text)
        }
        _ => Answer::refused("404 Not Found", "there are /, /stats and /metrics"),
    }
}
