//! Errors in a configuration file, each with its position and a remedy.
//!
//! [`Fault`] has the errors of host groups. A crate with another kind of file makes `Problems<F>` from an enum of its own.

use std::fmt;

use thiserror::Error;

use super::host_list::HostFault;

/// Problems beyond this number are only counted.
const MOST_TOLD: usize = 100;

/// The part of a file with a problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// The file as a whole, or a URL.
    Whole,
    /// The table `[defaults]`.
    Defaults,
    /// The table of the group with this name.
    HostGroup(String),
    /// Another table, by its name.
    Table(String),
}

/// A problem and its position.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{}{part}{fault}", within(.place, .line))]
pub struct Problem<F = Fault>
where
    F: fmt::Debug + fmt::Display,
{
    /// The file's name, or the URL.
    pub place: String,
    /// The line, from 1; 0: the file as a whole.
    pub line: usize,
    /// The part of the file.
    pub part: Part,
    /// The error.
    pub fault: Box<F>,
}

fn within(place: &str, line: &usize) -> String {
    if *line > 0 { format!("{place}:{line}: ") } else { format!("{place}: ") }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Part::Whole => Ok(()),
            Part::Defaults => f.write_str("[defaults]: "),
            Part::HostGroup(name) => write!(f, "server {name:?}: "),
            Part::Table(name) => write!(f, "[{name}]: "),
        }
    }
}

/// Kinds of errors.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[allow(missing_docs, reason = "the texts say what the fields are")]
pub enum Fault {
    /// The file does not exist or is not a file.
    #[error("cannot be read: {reason}")]
    Unreadable { reason: String },
    /// The file is too long for a configuration.
    #[error("has more than {} MiB: check that it is the configuration file", .most >> 20)]
    TooLarge { most: usize },
    /// The file is not UTF-8 text.
    #[error("the line is not UTF-8: save the file as UTF-8")]
    NotUtf8,
    /// The text is not valid TOML.
    #[error("is not valid TOML: {reason}")]
    NotToml { reason: String },
    /// A duplicate table or key.
    #[error("`{name}` is there twice: take one of the two out, or give it another name")]
    Twice { name: String },
    /// An unknown table.
    #[error("there is no table [{name}]: {}", table_meant(.near))]
    UnknownTable { name: String, near: Option<&'static str> },
    /// A value in place of a table.
    #[error("`{name}` is {found}: write a table, as in {example}")]
    NotATable { name: String, found: String, example: &'static str },
    /// An unknown key of a group.
    #[error("there is no key `{key}`: {}", key_meant(.near, *.option))]
    UnknownKey { key: String, near: Option<&'static str>, option: Option<&'static str> },
    /// Hosts in `[defaults]`, which all groups would share.
    #[error("`hosts` cannot be in [defaults]: write the hosts of each server into its own table")]
    DefaultHosts,
    /// An invalid value of a key.
    #[error("`{key}` is {found}: write {expected}")]
    Value { key: String, found: String, expected: String },
    /// A text with a zero byte, which process arguments cannot contain.
    #[error("`{key}` has a zero byte: take it out")]
    ZeroByte { key: String },
    /// A text that is too long.
    #[error("`{key}` has more than {most} bytes: write less")]
    TooLong { key: String, most: usize },
    /// A command with an unclosed quote.
    #[error(
        "`{key}` is {found}, in which a quote is not closed: close it, or write a list of words"
    )]
    OpenQuote { key: String, found: String },
    /// An invalid environment variable.
    #[error("`environment` has the name {name}: write one with at least a letter and without `=`")]
    Variable { name: String },
    /// An invalid resource name.
    #[error("`resources` has the name {name}: write one of 1 to {most} bytes on one line")]
    Resource { name: String, most: usize },
    /// Memory among the resources; it has a key of its own.
    #[error("`resources` has `memory`: write memory = \"64 GB\" instead")]
    MemoryAsResource,
    /// An invalid host.
    #[error("`hosts` has {text}: {fault}")]
    Host { text: String, fault: HostFault },
    /// A host with two agents.
    #[error("`hosts` has {host:?} twice: name it once; \"{host}:8\" gives it 8 workers")]
    HostTwice { host: String },
    /// An empty list of hosts.
    #[error("`hosts` is empty: name at least one host")]
    EmptyHosts,
    /// A group without hosts.
    #[error(
        "there are no `hosts`: name them, as in hosts = [\"node1\", \"node2\"], or write \
         launcher = \"local\" for workers on this machine"
    )]
    NoHosts,
    /// Ranges with too many hosts.
    #[error(
        "there are more than {most} hosts up to here: look for a slip in the ranges of `hosts`"
    )]
    TooManyHosts { most: u64 },
    /// Too many groups.
    #[error("there are more than {most} servers: put hosts that are alike into one")]
    TooManyServers { most: usize },
    /// An invalid name.
    #[error(
        "the name is {found}: choose one of 1 to 255 bytes without blanks and control characters"
    )]
    Name { found: String },
    /// Launcher "program" without a command.
    #[error(
        "the launcher is \"program\", and no `command` says which: write the command that runs it"
    )]
    NoCommand,
    /// Launcher "session" without a name.
    #[error("the launcher is \"session\", and no `session` says which: write its name")]
    NoSession,
    /// Launcher "server" without an address.
    #[error(
        "the launcher is \"server\", and no `server` says which: write its address, as in \
         server = \"lab.example.org\""
    )]
    NoServerAddress,
    /// A key of another launcher.
    #[error(
        "`{key}` has no meaning for the launcher {launcher:?}, only for {fits}: take it out, or \
         choose another `launcher`"
    )]
    NotForLauncher { key: &'static str, launcher: &'static str, fits: String },
    /// Several workers on a host of several nodes.
    #[error(
        "`workers` is {workers}, and a host with `nodes_per_host` has one worker, which uses all of its nodes: \
         write workers = 1, and the processors of each node as `cores`"
    )]
    OneWorker { workers: u32 },
    /// A request that has agents on all nodes, or starts none by a script.
    #[error(
        "`request` is {request:?}, and a host with `nodes_per_host` has a job of its own: write request = \"array\", \
         or take it out"
    )]
    JobOfItsOwn { request: &'static str },
    /// An unknown URL scheme.
    #[error(
        "is not the URL of a server: write ssh://HOST, local:, slurm:, gridengine:, htcondor:, pbs:, torque:, \
         lsf:, flux:, mpi:, session:NAME, gridrpc://HOST, gridrpc+unix://PATH or program:COMMAND"
    )]
    Scheme,
    /// Neither a name in the file nor a URL.
    #[error(
        "is neither a server of the file, which has {}, nor a URL as ssh://HOST or slurm:", listed(.names)
    )]
    NoServer { names: Vec<String> },
    /// A URL without a host.
    #[error("names no host: write it behind the slashes, as in ssh://node1")]
    NoHostInUrl,
    /// An unsupported part of a URL.
    #[error(
        "has {found} behind the host, which means nothing: write ?directory=PATH for a directory"
    )]
    PathInUrl { found: String },
    /// A path behind the host of a server, which offers functions and no folders.
    #[error("has {found} behind the host, which means nothing: the call itself names the function")]
    PathOfServer { found: String },
    /// A path of a Unix socket that is not absolute.
    #[error(
        "names no socket: write its absolute path, as in gridrpc+unix:///run/gridrpc/server.sock"
    )]
    NoSocketInUrl,
    /// An invalid escape sequence `%..`.
    #[error("has {found}: write % with two hexadecimal digits that stand for a byte of UTF-8")]
    Escape { found: String },
    /// An invalid query.
    #[error("has {found} in its query: write KEY=VALUE, with & between")]
    Query { found: String },
    /// A password, which ssh accepts only interactively.
    #[error("has a password, which ssh does not take: give ssh a key, and write ssh://user@host")]
    Password,
    /// A key that belongs elsewhere in the URL.
    #[error("has the key `{key}` in its query: {instead}")]
    KeyInUrl { key: String, instead: &'static str },
}

fn table_meant(near: &Option<&'static str>) -> String {
    match near {
        Some("server") => "did you mean [server.NAME]?".into(),
        Some(near) => format!("did you mean [{near}]?"),
        None => "a file has the tables [grid], [defaults] and [server.NAME]".into(),
    }
}

/// Most names in a message.
const MOST_NAMED: usize = 10;

/// Lists the first of these names.
pub fn listed(names: &[String]) -> String {
    let named = names[..names.len().min(MOST_NAMED)].join(", ");
    if names.len() > MOST_NAMED { format!("{named}, ...") } else { named }
}

/// `option`: the option syntax of the group's batch system.
fn key_meant(near: &Option<&'static str>, option: Option<&'static str>) -> String {
    match (near, option) {
        (Some(near), _) => format!("did you mean `{near}`?"),
        (None, Some(option)) => format!(
            "an option of the batch system that has no key is written as in options = [{option:?}], in a URL \
             as in options={option}"
        ),
        (None, None) => {
            let names: Vec<&str> = super::schema::names().collect();
            format!("the keys of a server are {}", names.join(", "))
        }
    }
}

/// All problems of a file, in the order of its lines; never empty.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub struct Problems<F = Fault>
where
    F: fmt::Debug + fmt::Display,
{
    /// The first problems, a hundred at most.
    pub listed: Vec<Problem<F>>,
    /// The number of further problems.
    pub more: usize,
}

impl<F: fmt::Debug + fmt::Display> fmt::Display for Problems<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.listed.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{problem}")?;
        }
        match self.more {
            0 => Ok(()),
            1 => f.write_str("\nand one more problem"),
            more => write!(f, "\nand {more} more problems"),
        }
    }
}

/// Collects problems while a text is read.
#[derive(Debug)]
pub struct Report<'t, F = Fault>
where
    F: fmt::Debug + fmt::Display,
{
    place: &'t str,
    /// Ends of the lines.
    ends: Vec<usize>,
    /// The part being read.
    pub part: Part,
    found: Vec<Problem<F>>,
}

impl<'t, F: fmt::Debug + fmt::Display> Report<'t, F> {
    pub(super) fn new(place: &'t str, text: &str) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let ends = ends.map(|(at, _)| at).collect();
        Report { place, ends, part: Part::Whole, found: Vec::new() }
    }

    /// Adds a problem at this byte of the text.
    pub fn add(&mut self, at: usize, fault: impl Into<F>) {
        let line = 1 + self.ends.partition_point(|end| *end < at);
        self.found.push(whole(self.place, line, self.part.clone(), fault.into()));
    }

    /// Start of the line of this byte.
    pub(super) fn line_start(&self, at: usize) -> usize {
        let before = self.ends.partition_point(|end| *end < at);
        before.checked_sub(1).map_or(0, |last| self.ends[last] + 1)
    }

    /// Returns itself, unless there are problems so far.
    pub(super) fn checked(self) -> Result<Self, Problems<F>> {
        if self.found.is_empty() { Ok(self) } else { Err(self.problems()) }
    }

    /// Returns the result, unless there are problems.
    pub(super) fn finish<T>(self, made: T) -> Result<T, Problems<F>> {
        if self.found.is_empty() { Ok(made) } else { Err(self.problems()) }
    }

    fn problems(self) -> Problems<F> {
        let mut found = self.found;
        found.sort_by_key(|problem| problem.line);
        let more = found.len().saturating_sub(MOST_TOLD);
        found.truncate(MOST_TOLD);
        Problems { listed: found, more }
    }
}

fn whole<F: fmt::Debug + fmt::Display>(
    place: &str,
    line: usize,
    part: Part,
    fault: F,
) -> Problem<F> {
    Problem { place: place.into(), line, part, fault: Box::new(fault) }
}

impl<F: fmt::Debug + fmt::Display> From<Problem<F>> for Problems<F> {
    fn from(problem: Problem<F>) -> Problems<F> {
        Problems { listed: vec![problem], more: 0 }
    }
}

impl<F: fmt::Debug + fmt::Display> Problems<F> {
    /// The single problem of a file that cannot be read any further.
    pub(super) fn one(place: &str, line: usize, fault: impl Into<F>) -> Problems<F> {
        Problems { listed: vec![whole(place, line, Part::Whole, fault.into())], more: 0 }
    }
}
