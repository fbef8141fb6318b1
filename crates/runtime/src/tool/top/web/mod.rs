//! `gridrpc top --web`: a page about running grids, for this machine alone; and the same for Prometheus.
//!
//! Whoever can connect to this machine's own address can read it, other users too: it tells names of functions,
//! hosts and programs, and nothing of arguments and results. Pages of other sites cannot: what is asked for under
//! another name than this machine's own is refused.

mod metrics;
mod request;

use std::io::{self, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;

use crate::tool::top::choice::Wanted;
use crate::tool::top::signals::{Heard, Signals};
use crate::tool::top::{TopError, all_told, print};
use request::{Refused, path_of};

const PAGE: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// How long a browser has to ask, and to take what it is sent.
const PATIENCE: Duration = Duration::from_secs(5);
/// Connections that are served at one time.
const MOST: usize = 32;
/// As often it is looked whether the user has ended this.
const LONG: Duration = Duration::from_secs(3600);

/// What is sent.
struct Answer {
    status: &'static str,
    kind: &'static str,
    text: String,
}

impl Answer {
    fn found(kind: &'static str, text: impl Into<String>) -> Answer {
        Answer { status: "200 OK", kind, text: text.into() }
    }

    fn refused(status: &'static str, why: &str) -> Answer {
        Answer { status, kind: "text/plain; charset=utf-8", text: format!("{why}\n") }
    }

    /// All that is sent. What the page loads comes from here, and nothing of it is kept.
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

/// Serves the page until the user ends that.
///
/// # Errors
/// When the port cannot be had.
pub(super) fn serve(port: u16, wanted: Option<Wanted>) -> Result<(), TopError> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))
        .map_err(|error| TopError::Port(port, error))?;
    let address = listener.local_addr().map_err(|error| TopError::Port(port, error))?;
    // Before any thread, which would else be the one that they end.
    let signals = Signals::new().map_err(|error| TopError::System("signals", error))?;
    let accept = move || accept(&listener, &Arc::new(wanted));
    std::thread::Builder::new()
        .name("gridrpc-web".into())
        .spawn(accept)
        .map_err(|error| TopError::System("starting a thread", error))?;
    print(&format!("http://{address}/\n"))?;
    while signals.wait(LONG, false).map_err(|error| TopError::System("waiting", error))?
        != Heard::End
    {}
    Ok(())
}

fn accept(listener: &TcpListener, wanted: &Arc<Option<Wanted>>) {
    let served = Arc::new(AtomicUsize::new(0));
    for stream in listener.incoming() {
        let Ok(stream) = stream else {
            // There are too few descriptors, most likely: others end meanwhile.
            std::thread::sleep(Duration::from_millis(50));
            continue;
        };
        if served.load(Ordering::Relaxed) >= MOST {
            continue;
        }
        served.fetch_add(1, Ordering::Relaxed);
        let (now, wanted) = (Arc::clone(&served), Arc::clone(wanted));
        let run = move || {
            // One that has gone away is told nothing.
            let _ = answer(stream, (*wanted).as_ref());
            now.fetch_sub(1, Ordering::Relaxed);
        };
        if std::thread::Builder::new().name("gridrpc-web".into()).spawn(run).is_err() {
            served.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

fn answer(mut stream: TcpStream, wanted: Option<&Wanted>) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let (answer, with_text) = match path_of(&mut stream)? {
        Ok(asked) => (found(&asked.path, wanted), !asked.head_only),
        Err(Refused::Malformed) => (Answer::refused("400 Bad Request", "this is no request"), true),
        Err(Refused::Method) => {
            (Answer::refused("405 Method Not Allowed", "only GET is served"), true)
        }
        Err(Refused::Host) => {
            let why = "ask for this page as localhost or 127.0.0.1";
            (Answer::refused("421 Misdirected Request", why), true)
        }
    };
    stream.write_all(&answer.bytes(with_text))
}

fn found(path: &str, wanted: Option<&Wanted>) -> Answer {
    match path {
        "/" => Answer::found("text/html; charset=utf-8", PAGE),
        "/page.css" => Answer::found("text/css; charset=utf-8", STYLE),
        "/page.js" => Answer::found("text/javascript; charset=utf-8", SCRIPT),
        "/stats" => {
            let text = json!({ "grids": all_told(wanted) }).to_string();
            Answer::found("application/json", text)
        }
        "/metrics" => {
            let text = metrics::exposition(&all_told(wanted));
            Answer::found("text/plain; version=0.0.4; charset=utf-8", text)
        }
        _ => Answer::refused("404 Not Found", "there are /, /stats and /metrics"),
    }
}
