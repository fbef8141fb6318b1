//! The HTTP request parser, as much of it as the page needs.

use std::io::{self, Read};

/// Longest request, bytes.
const LONGEST: usize = 16 << 10;

/// A request.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct WebRequest {
    pub(super) path: String,
    /// The tokens in its URL and headers.
    pub(super) tokens: Vec<String>,
    /// Whether only the headers are requested.
    pub(super) head_only: bool,
}

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    Malformed,
    Method,
    /// Its host name is not this machine's: possibly a page of a site whose name resolves here.
    Host,
}

/// Reads a request.
pub(super) fn path_of(stream: &mut impl Read) -> io::Result<Result<WebRequest, Refused>> {
    let mut bytes = Vec::new();
    let mut part = [0; 1024];
    while !bytes.windows(4).any(|end| end == b"\r\n\r\n") {
        let count = stream.read(&mut part)?;
        if count == 0 || bytes.len() + count > LONGEST {
            return Ok(Err(Refused::Malformed));
        }
        bytes.extend_from_slice(&part[..count]);
    }
    Ok(parse(&String::from_utf8_lossy(&bytes)))
}

fn parse(text: &str) -> Result<WebRequest, Refused> {
    let mut lines = text.split("\r\n");
    let first: Vec<&str> = lines.next().unwrap_or_default().split(' ').collect();
    let [method, path, version] = first[..] else { return Err(Refused::Malformed) };
    if !version.starts_with("HTTP/1.") {
        return Err(Refused::Malformed);
    }
    if !matches!(method, "GET" | "HEAD") {
        return Err(Refused::Method);
    }
    let fields: Vec<(&str, &str)> = lines
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name, value.trim()))
        .collect();
    let named = |wanted: &'static str| {
        let all = fields.iter().filter(move |(name, _)| name.eq_ignore_ascii_case(wanted));
        all.map(|(_, value)| *value)
    };
    let hosts: Vec<&str> = named("host").collect();
    let [host] = hosts[..] else { return Err(Refused::Malformed) };
    if !is_this_machine(host) {
        return Err(Refused::Host);
    }
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let in_address = query.split('&').filter_map(|part| part.strip_prefix("token="));
    let tokens = in_address.chain(named("authorization").filter_map(bearer));
    Ok(WebRequest {
        path: path.to_owned(),
        tokens: tokens.map(str::to_owned).collect(),
        head_only: method == "HEAD",
    })
}

/// The token in an `Authorization` header.
fn bearer(value: &str) -> Option<&str> {
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// Accepts any port: a tunnel may lead here under another one.
fn is_this_machine(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.chars().all(|c| c.is_ascii_digit()) => name,
        _ => host,
    };
    name.eq_ignore_ascii_case("localhost") || name == "127.0.0.1"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path_in(text: &str) -> Result<String, Refused> {
        path_of(&mut text.as_bytes()).expect("it can be read").map(|path_in| path_in.path)
    }

    #[test]
    fn requests_for_this_machine_are_understood() {
        for host in ["127.0.0.1:8080", "localhost", "LOCALHOST:1"] {
            let text = format!("GET /stats?x=1 HTTP/1.1\r\nAccept: */*\r\nhost: {host}\r\n\r\n");
            assert_eq!(path_in(&text).as_deref(), Ok("/stats"), "{host}");
        }
    }

    #[test]
    fn tokens_are_found_in_the_address_and_in_the_head() {
        let tokens = |path: &str, fields: &str| {
            let text = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n");
            path_of(&mut text.as_bytes()).expect("it can be read").expect("it is one").tokens
        };
        assert_eq!(tokens("/?token=abc", ""), ["abc"]);
        assert_eq!(tokens("/metrics?x=1&token=abc", ""), ["abc"]);
        assert_eq!(tokens("/metrics", "authorization:  bearer  abc\r\n"), ["abc"]);
        assert_eq!(tokens("/?token=a", "Authorization: Bearer b\r\n"), ["a", "b"]);
        let none: [&str; 0] = [];
        assert_eq!(tokens("/token=abc", "Authorization: Basic abc\r\n"), none);
        assert_eq!(tokens("/?mytoken=abc", "Authorization: abc\r\nToken: abc\r\n"), none);
    }

    #[test]
    fn all_others_are_refused() {
        let with_host = |host| path_in(&format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n"));
        for host in ["evil.example", "127.0.0.1.evil.example:80", "localhost.evil:80", "", "[::1"] {
            assert_eq!(with_host(host), Err(Refused::Host), "{host}");
        }
        assert_eq!(path_in("POST / HTTP/1.1\r\nHost: localhost\r\n\r\n"), Err(Refused::Method));
        let twice = "GET / HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n";
        for text in
            ["", "GET /\r\n\r\n", "GET / HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\r\nHost:", twice]
        {
            assert_eq!(path_in(text), Err(Refused::Malformed), "{text:?}");
        }
        let long =
            format!("GET / HTTP/1.1\r\nHost: localhost\r\nA: {}\r\n\r\n", "x".repeat(LONGEST));
        assert_eq!(path_in(&long), Err(Refused::Malformed));
    }
}
