//! Syntax of hosts: `node1`, `ann@node2:4`, `gpu[01-08]`, `rack[1-2]n[1-3,7]:2`, `[fd00::7]:4`.
//!
//! Ranges, and comma-separated hosts in one text, follow Slurm's syntax. The number of hosts in a text is
//! computed before any host is created.

use std::net::Ipv6Addr;

use thiserror::Error;

/// Limit on the workers of one host.
pub(super) const MOST_WORKERS: u32 = 100_000;
/// Longest name of a host, bytes, including a user.
const LONGEST_NAME: usize = 512;
/// Most digits of a number in a range.
const MOST_DIGITS: usize = 18;

/// Error in a list of hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum HostFault {
    /// The name is empty.
    #[error("a name is missing: write one, such as node1")]
    Empty,
    /// A character that names do not have.
    #[error(
        "names of hosts have no blanks and control characters: write each host as a text of its own"
    )]
    Blank,
    /// It would be parsed as an option.
    #[error("names of hosts do not begin with `-`: write the host's name or address")]
    Dash,
    /// The name is too long.
    #[error("names of hosts have at most {LONGEST_NAME} bytes: write a shorter one")]
    Long,
    /// `user@` with one part missing.
    #[error("`@` stands between a user and a host: write user@host")]
    User,
    /// The text after the colon is not a number of workers.
    #[error("behind `:` is the number of workers: write one from 1 to {MOST_WORKERS}")]
    Workers,
    /// More than one colon.
    #[error("it has several colons: write an IPv6 address in brackets, as in [fd00::7]:4")]
    Colons,
    /// Unbalanced brackets.
    #[error("its brackets do not match: write a range such as gpu[01-08]")]
    Brackets,
    /// The text in brackets is not a range.
    #[error("ranges have numbers of at most 18 digits, as in [1-3,7]: write it so")]
    Range,
    /// A range whose end is below its start.
    #[error("a range ends before it begins: write the smaller number first")]
    Backwards,
    /// Leading zeros that differ.
    #[error("the numbers of a range with leading zeros have as many digits: write [01-08]")]
    Width,
}

/// Numbers from first to last, padded to this many digits.
#[derive(Debug)]
struct Numbers {
    first: u64,
    last: u64,
    digits: usize,
}

#[derive(Debug)]
enum Piece {
    Text(String),
    Ranges(Vec<Numbers>),
}

/// One host, or several with numbers in their names.
#[derive(Debug)]
pub(super) struct Pattern {
    pieces: Vec<Piece>,
    workers: Option<u32>,
}

/// Parses a text into patterns.
pub(super) fn patterns(text: &str) -> Result<Vec<Pattern>, HostFault> {
    let mut depth = 0_u32;
    let parts = text.split(|c: char| {
        match c {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    });
    parts.map(|part| pattern(part.trim())).collect()
}

fn pattern(text: &str) -> Result<Pattern, HostFault> {
    if text.is_empty() {
        return Err(HostFault::Empty);
    }
    if text.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Err(HostFault::Blank);
    }
    let (name, workers) = split_workers(text)?;
    let pieces = pieces(name)?;
    let longest: usize = pieces.iter().map(Piece::longest).sum();
    if longest > LONGEST_NAME {
        return Err(HostFault::Long);
    }
    let (user, host) = match name.rsplit_once('@') {
        Some((user, host)) if user.is_empty() || host.is_empty() => return Err(HostFault::User),
        Some((user, host)) => (user, host),
        None => ("", name),
    };
    if host.is_empty() {
        return Err(HostFault::Empty);
    }
    if user.starts_with('-') || host.starts_with('-') {
        return Err(HostFault::Dash);
    }
    Ok(Pattern { pieces, workers })
}

/// Splits a text into the name and its number of workers.
fn split_workers(text: &str) -> Result<(&str, Option<u32>), HostFault> {
    let behind_brackets = text.rfind(']').map_or(0, |at| at + 1);
    let tail = &text[behind_brackets..];
    let Some((before, number)) = tail.split_once(':') else { return Ok((text, None)) };
    if number.contains(':') {
        let host = text.rsplit_once('@').map_or(text, |(_, host)| host);
        let address = host.split('%').next().unwrap_or(host);
        let is_address = behind_brackets == 0 && address.parse::<Ipv6Addr>().is_ok();
        return if is_address { Ok((text, None)) } else { Err(HostFault::Colons) };
    }
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    match number.parse() {
        Ok(workers @ 1..=MOST_WORKERS) if is_number => {
            Ok((&text[..behind_brackets + before.len()], Some(workers)))
        }
        _ => Err(HostFault::Workers),
    }
}

fn pieces(name: &str) -> Result<Vec<Piece>, HostFault> {
    let mut pieces = Vec::new();
    let mut rest = name;
    while let Some((before, behind)) = rest.split_once('[') {
        let (inside, after) = behind.split_once(']').ok_or(HostFault::Brackets)?;
        if before.contains(']') || inside.contains('[') {
            return Err(HostFault::Brackets);
        }
        pieces.push(Piece::Text(before.into()));
        // ssh expects an address without the brackets.
        if inside.contains(':') {
            let address = inside.split('%').next().unwrap_or(inside);
            let is_all = after.is_empty() && (before.is_empty() || before.ends_with('@'));
            if !is_all || address.parse::<Ipv6Addr>().is_err() {
                return Err(HostFault::Colons);
            }
            pieces.push(Piece::Text(inside.into()));
        } else {
            pieces.push(Piece::Ranges(inside.split(',').map(numbers).collect::<Result<_, _>>()?));
        }
        rest = after;
    }
    if rest.contains(']') {
        return Err(HostFault::Brackets);
    }
    pieces.push(Piece::Text(rest.into()));
    Ok(pieces)
}

fn numbers(text: &str) -> Result<Numbers, HostFault> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let number = |text: &str| {
        let is_number =
            (1..=MOST_DIGITS).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
        text.parse::<u64>().ok().filter(|_| is_number).ok_or(HostFault::Range)
    };
    let is_padded = |text: &str| text.len() > 1 && text.starts_with('0');
    let (from, to) = (number(first)?, number(last)?);
    if from > to {
        return Err(HostFault::Backwards);
    }
    if first.len() != last.len() && is_padded(last) {
        return Err(HostFault::Width);
    }
    Ok(Numbers { first: from, last: to, digits: if is_padded(first) { first.len() } else { 1 } })
}

impl Piece {
    fn longest(&self) -> usize {
        match self {
            Piece::Text(text) => text.len(),
            Piece::Ranges(_) => MOST_DIGITS,
        }
    }

    fn count(&self) -> u64 {
        match self {
            Piece::Text(_) => 1,
            Piece::Ranges(ranges) => ranges
                .iter()
                .map(|Numbers { first, last, .. }| last - first + 1)
                .fold(0, u64::saturating_add),
        }
    }
}

impl Pattern {
    /// Number of hosts.
    pub(super) fn count(&self) -> u64 {
        self.pieces.iter().map(Piece::count).fold(1, u64::saturating_mul)
    }

    /// The hosts; the rightmost number varies fastest.
    pub(super) fn hosts(&self) -> Vec<Host> {
        let mut names = vec![String::new()];
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => names.iter_mut().for_each(|name| name.push_str(text)),
                Piece::Ranges(ranges) => {
                    let all = |name: &String| {
                        let name = name.clone();
                        ranges.iter().flat_map(move |Numbers { first, last, digits }| {
                            let name = name.clone();
                            (*first..=*last).map(move |n| format!("{name}{n:0digits$}"))
                        })
                    };
                    names = names.iter().flat_map(all).collect();
                }
            }
        }
        let workers = self.workers;
        names.into_iter().map(|name| Host { name, workers }).collect()
    }
}

/// Limit on the hosts of a file.
pub(super) const MOST_HOSTS: u64 = 100_000;

/// A host of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// Its name for the launcher: a name, an address, `user@name`, or an alias from ssh's configuration.
    pub name: String,
    /// Number of workers; none: the group's.
    pub workers: Option<u32>,
}

impl Host {
    /// A host with its group's number of workers.
    #[must_use]
    pub fn named(name: impl Into<String>) -> Host {
        Host { name: name.into(), workers: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        let all = patterns(text).unwrap();
        let hosts: Vec<Host> = all.iter().flat_map(Pattern::hosts).collect();
        assert_eq!(all.iter().map(Pattern::count).sum::<u64>(), hosts.len() as u64);
        let show = |Host { name, workers }| match workers {
            Some(workers) => format!("{name} x{workers}"),
            None => name,
        };
        hosts.into_iter().map(show).collect()
    }

    #[test]
    fn hosts_with_users_workers_and_addresses() {
        assert_eq!(names("node1"), ["node1"]);
        assert_eq!(names("ann@node2:4"), ["ann@node2 x4"]);
        assert_eq!(names("10.0.0.1:2"), ["10.0.0.1 x2"]);
        assert_eq!(names("fd00::7"), ["fd00::7"]);
        assert_eq!(names("[fd00::7]"), ["fd00::7"]);
        assert_eq!(names("ann@[fe80::7%eth0]:4"), ["ann@fe80::7%eth0 x4"]);
    }

    #[test]
    fn ranges_as_slurm_writes_them() {
        assert_eq!(names("gpu[08-10]:2"), ["gpu08 x2", "gpu09 x2", "gpu10 x2"]);
        assert_eq!(names("n[1-3,7]"), ["n1", "n2", "n3", "n7"]);
        assert_eq!(names("n[9-10].hpc"), ["n9.hpc", "n10.hpc"]);
        assert_eq!(names("r[1-2]n[0,5]"), ["r1n0", "r1n5", "r2n0", "r2n5"]);
        assert_eq!(names("a[1,2], b:3"), ["a1", "a2", "b x3"]);
        assert_eq!(names("u@[1-2]"), ["u@1", "u@2"]);
    }

    #[test]
    fn how_many_there_are_is_known_before_they_are_made() {
        let all = patterns("a[0-999999999999999999]b[0-999999999999999999]").unwrap();
        assert_eq!(all[0].count(), u64::MAX);
    }

    #[test]
    fn what_names_no_host() {
        for (text, fault) in [
            ("", HostFault::Empty),
            ("a,,b", HostFault::Empty),
            (":4", HostFault::Empty),
            ("a b", HostFault::Blank),
            ("a\u{7}", HostFault::Blank),
            ("-oProxyCommand=x", HostFault::Dash),
            ("ann@-l", HostFault::Dash),
            ("-l@node", HostFault::Dash),
            ("@node", HostFault::User),
            ("ann@", HostFault::User),
            ("a:0", HostFault::Workers),
            ("a:", HostFault::Workers),
            ("a:+4", HostFault::Workers),
            ("a:100001", HostFault::Workers),
            ("a:b:c", HostFault::Colons),
            ("n[::1]", HostFault::Colons),
            ("[::x]", HostFault::Colons),
            ("n[1", HostFault::Brackets),
            ("n1]", HostFault::Brackets),
            ("n[1[2]]", HostFault::Brackets),
            ("n[]", HostFault::Range),
            ("n[a-b]", HostFault::Range),
            ("n[1-]", HostFault::Range),
            ("n[1-2-3]", HostFault::Range),
            ("n[1234567890123456789]", HostFault::Range),
            ("n[3-1]", HostFault::Backwards),
            ("n[1-02]", HostFault::Width),
        ] {
            assert_eq!(patterns(text).unwrap_err(), fault, "{text}");
        }
        assert_eq!(patterns(&"x".repeat(513)).unwrap_err(), HostFault::Long);
    }
}
