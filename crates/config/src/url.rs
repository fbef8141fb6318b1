//! A group as a URL: `ssh://ann@node1:22?workers=4`, `local:?workers=2`, `program:COMMAND?hosts=a,b`,
//! `slurm:?nodes=4`, `gridengine:?nodes=4`, `htcondor:?nodes=4`, `pbs:?nodes=4`,
//! `torque:`, `lsf:`, `flux:`, `mpi:`, `session:NAME`, `gridrpc://host:7711`, `gridrpc+unix:///run/server.sock`.
//!
//! The keys of the query are those of a table. A URL is converted into a table and read as one, so that
//! errors in values are reported in one place.

use super::batch_systems::BatchSystem;
use super::group::{HostGroup, LauncherKind};
use super::problems::{Fault, Part, Problem};
use super::read::read;
use super::schema::{Kind, kind};
use super::server::{ServerAddress, address, parse_port};
use super::session::check_name;
use super::values::shown;
use super::write::{key as written_key, list, quoted};

/// Longest URL, bytes.
const LONGEST: usize = 64 << 10;

/// The group that a URL describes, named after its host.
///
/// # Errors
///
/// The first problem of the URL.
pub fn from_url(text: &str) -> Result<HostGroup, Problem> {
    let place = format!("`{}`", text.chars().take(200).collect::<String>());
    let problem = |fault| {
        let fault = Box::new(fault);
        Problem { place: place.clone(), line: 0, part: Part::Whole, fault }
    };
    let table = table(text).map_err(problem)?;
    let found = read(&table.text, "");
    let groups = found.map_err(|found| match found.listed.into_iter().next() {
        Some(first) => problem(*first.fault),
        None => problem(Fault::Scheme),
    })?;
    let mut group = groups.into_iter().next().ok_or_else(|| problem(Fault::Scheme))?;
    if let (Some(port), LauncherKind::Ssh { command }) = (table.port, &mut group.launcher) {
        command.extend(["-p".into(), port.to_string()]);
    }
    Ok(group)
}

/// A URL as the text of a table, and the port, which has no key.
struct Table {
    text: String,
    port: Option<u16>,
}

fn table(text: &str) -> Result<Table, Fault> {
    if text.len() > LONGEST {
        return Err(Fault::TooLong { key: "URL".into(), most: LONGEST });
    }
    let (scheme, rest) = text.split_once(':').ok_or(Fault::Scheme)?;
    let (body, query) = rest.split_once('?').unwrap_or((rest, ""));
    let mut port = None;
    let mut lines = Vec::new();
    let mut set = |key: &str, value: String| lines.push(format!("{key} = {value}"));
    let scheme = scheme.to_ascii_lowercase();
    let launcher = match scheme.as_str() {
        "gridrpc" | "gridrpc+unix" => "server",
        scheme => scheme,
    };
    let name = match scheme.as_str() {
        "ssh" => {
            let authority = authority(body)?.ok_or(Fault::Scheme)?;
            let Authority { user, host, port: given } = split(authority)?;
            port = given;
            let user = user.map(|user| format!("{user}@")).unwrap_or_default();
            let is_address = host.contains(':');
            let bracketed = if is_address { format!("[{host}]") } else { host.clone() };
            set("hosts", list(&[user + &bracketed]));
            host
        }
        "local" => match authority(body)? {
            None | Some("") => "local".into(),
            Some(name) => {
                let name = decoded(name)?;
                set("hosts", list(std::slice::from_ref(&name)));
                name
            }
        },
        "program" => {
            let command = decoded(body)?;
            set("command", quoted(&command));
            let words = shlex::split(&command).unwrap_or_default();
            let file = words.first().and_then(|word| word.rsplit('/').next());
            file.filter(|file| super::read::is_name(file)).unwrap_or("program").to_owned()
        }
        "session" => {
            let name = decoded(body)?;
            check_name(&name)?;
            set("session", quoted(&name));
            name
        }
        "gridrpc" | "gridrpc+unix" => {
            let address = server(&scheme, body)?;
            set("server", quoted(&address.to_string()));
            address.name()
        }
        name if BatchSystem::named(name).is_some() => match authority(body)? {
            None | Some("") => scheme.clone(),
            Some(name) => decoded(name)?,
        },
        _ => return Err(Fault::Scheme),
    };
    set("launcher", quoted(launcher));
    let has_hosts = lines.iter().any(|line| line.starts_with("hosts"));
    lines.extend(self::query(query, launcher, has_hosts)?);
    Ok(Table { text: format!("[server.{}]\n{}\n", written_key(&name), lines.join("\n")), port })
}

/// The address of a server: what stands after two slashes.
fn server(scheme: &str, body: &str) -> Result<ServerAddress, Fault> {
    let text = body.strip_prefix("//").ok_or(Fault::Scheme)?;
    if scheme == "gridrpc+unix" {
        let is_path = text.starts_with('/') && text.len() > 1;
        return if is_path { address(&decoded(text)?) } else { Err(Fault::NoSocketInUrl) };
    }
    match text.split_once(['/', '#']) {
        None | Some((_, "")) => {}
        Some((host, _)) => return Err(Fault::PathOfServer { found: shown(&text[host.len()..]) }),
    }
    let host = text.strip_suffix('/').unwrap_or(text);
    if host.is_empty() || host.starts_with(':') {
        return Err(Fault::NoHostInUrl);
    }
    address(&decoded(host)?)
}

/// The text after two slashes; none if there are no slashes and no text.
fn authority(body: &str) -> Result<Option<&str>, Fault> {
    let path = |found: &str| Err(Fault::PathInUrl { found: shown(found) });
    let Some(rest) = body.strip_prefix("//") else {
        return if body.is_empty() { Ok(None) } else { path(body) };
    };
    match rest.find(['/', '#']) {
        Some(end) if &rest[end..] != "/" => path(&rest[end..]),
        Some(end) => Ok(Some(&rest[..end])),
        None => Ok(Some(rest)),
    }
}

struct Authority {
    user: Option<String>,
    host: String,
    port: Option<u16>,
}

/// `[user@]host[:port]`.
fn split(authority: &str) -> Result<Authority, Fault> {
    let (user, rest) = match authority.rsplit_once('@') {
        Some((user, _)) if user.contains(':') => return Err(Fault::Password),
        Some((user, rest)) => (Some(decoded(user)?), rest),
        None => (None, authority),
    };
    // An address in brackets; other brackets are ranges.
    let (host, port) = match rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, behind)) if address.contains(':') => match behind.strip_prefix(':') {
            Some(port) => (address, Some(port)),
            None if behind.is_empty() => (address, None),
            None => return Err(Fault::PathInUrl { found: shown(behind) }),
        },
        _ => match rest.rsplit_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (rest, None),
        },
    };
    if host.is_empty() {
        return Err(Fault::NoHostInUrl);
    }
    Ok(Authority { user, host: decoded(host)?, port: port.map(number).transpose()? })
}

fn number(port: &str) -> Result<u16, Fault> {
    parse_port(port).ok_or_else(|| Fault::Value {
        key: "port".into(),
        found: shown(port),
        expected: "a number from 1 to 65535; workers are written as ?workers=4".into(),
    })
}

/// The lines of a table for a query.
fn query(query: &str, launcher: &str, has_hosts: bool) -> Result<Vec<String>, Fault> {
    let mut said: Vec<(String, Vec<String>)> = Vec::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let Some((key, value)) = pair.split_once('=') else {
            return Err(Fault::Query { found: shown(pair) });
        };
        let (key, value) = (decoded(key)?, decoded(value)?);
        check(&key, launcher, has_hosts)?;
        match said.iter_mut().find(|(known, _)| *known == key) {
            Some((_, values)) if kind(&key) == Some(Kind::List) => values.push(value),
            Some(_) => return Err(Fault::Twice { name: key }),
            None => said.push((key, vec![value])),
        }
    }
    Ok(said.iter().map(|(key, values)| line(key, values)).collect())
}

/// Rejects query keys whose value comes from another part of the URL.
fn check(key: &str, launcher: &str, has_hosts: bool) -> Result<(), Fault> {
    let instead = match (key, launcher) {
        ("launcher", _) => "what stands before the colon is the launcher",
        ("hosts", _) if has_hosts => "write the host after the slashes",
        ("command", "program") => "write the command after `program:`",
        ("server", "server") => "write the server after the slashes",
        ("session", "session") => "write the name after `session:`",
        ("environment", _) => "write environment.NAME=VALUE for each variable",
        ("resources", _) => "write resources.NAME=NUMBER for each resource",
        _ => return Ok(()),
    };
    Err(Fault::KeyInUrl { key: key.into(), instead })
}

fn line(key: &str, values: &[String]) -> String {
    let value = values.first().map(String::as_str).unwrap_or_default();
    if let Some(name) = key.strip_prefix("environment.") {
        return format!("environment.{} = {}", written_key(name), quoted(value));
    }
    if let Some(name) = key.strip_prefix("resources.") {
        return format!("resources.{} = {}", written_key(name), numeric(value));
    }
    let value = match kind(key) {
        Some(Kind::Number) => numeric(value),
        // A number of seconds, unless it is a clock time.
        _ if key == "wall_time" && value.bytes().all(|byte| byte.is_ascii_digit()) => {
            numeric(value)
        }
        Some(Kind::Flag) if matches!(value, "true" | "false") => value.to_owned(),
        Some(Kind::List) if matches!(key, "addresses" | "preload" | "skip") => {
            let parts = values.iter().flat_map(|value| value.split(','));
            list(&parts.map(str::to_owned).collect::<Vec<_>>())
        }
        Some(Kind::List) => list(values),
        _ => quoted(value),
    };
    format!("{} = {value}", written_key(key))
}

/// A number in TOML syntax. Anything else becomes a text, which the table reader rejects.
fn numeric(value: &str) -> String {
    if let Ok(number) = value.parse::<i64>() {
        return number.to_string();
    }
    match value.parse::<f64>() {
        Ok(number) if number.is_finite() => format!("{number:?}"),
        _ => quoted(value),
    }
}

/// Decodes the `%..` sequences in a part of a URL.
fn decoded(text: &str) -> Result<String, Fault> {
    let escape = |found: &str| Fault::Escape { found: shown(found) };
    let mut bytes = Vec::with_capacity(text.len());
    let mut parts = text.split('%');
    bytes.extend(parts.next().unwrap_or_default().bytes());
    for part in parts {
        let digits = part.get(..2).filter(|two| two.bytes().all(|b| b.is_ascii_hexdigit()));
        let digits = digits.ok_or_else(|| escape(&format!("%{part}")))?;
        bytes.push(u8::from_str_radix(digits, 16).map_err(|_| escape(digits))?);
        bytes.extend(part[2..].bytes());
    }
    String::from_utf8(bytes).map_err(|_| escape(text))
}
