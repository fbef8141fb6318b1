//! What is wrong with a description of groups: all of it, each with its place and what to do about it.

use std::fmt;

use thiserror::Error;

use super::host_list::HostFault;

/// More problems than this are counted, and not told.
const MOST_TOLD: usize = 100;

/// The part of a file that a problem is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// The file as a whole, or a URL.
    Whole,
    /// The table `[defaults]`.
    Defaults,
    /// The table of the group with this name.
    HostGroup(String),
}

/// One thing that is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{}{part}{fault}", within(.place, .line))]
pub struct Problem {
    /// The file as it was named, or the URL.
    pub place: String,
    /// The line, from 1; 0: the file as a whole.
    pub line: usize,
    /// Which of its parts.
    pub part: Part,
    /// What is wrong.
    pub fault: Box<Fault>,
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
        }
    }
}

/// What can be wrong.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[allow(missing_docs, reason = "the texts say what the fields are")]
pub enum Fault {
    /// The file is not there, or is none.
    #[error("cannot be read: {reason}")]
    Unreadable { reason: String },
    /// The file is longer than descriptions of grids are.
    #[error("has more than {} MiB: give the file that describes the grid", .most >> 20)]
    TooLarge { most: usize },
    /// The file is no text.
    #[error("the line is not UTF-8: save the file as UTF-8")]
    NotUtf8,
    /// The text does not follow the rules of TOML.
    #[error("is not valid TOML: {reason}")]
    NotToml { reason: String },
    /// A table or a key, twice.
    #[error("`{name}` is there twice: take one of the two out, or give it another name")]
    Twice { name: String },
    /// A table that means nothing.
    #[error("there is no table [{name}]: {}", table_meant(.near))]
    UnknownTable { name: String, near: Option<&'static str> },
    /// A value in the place of a table.
    #[error("`{name}` is {found}: write a table, as in {example}")]
    NotATable { name: String, found: String, example: &'static str },
    /// A key that groups do not have.
    #[error("there is no key `{key}`: {}", key_meant(.near, *.option))]
    UnknownKey { key: String, near: Option<&'static str>, option: Option<&'static str> },
    /// Hosts that all groups would have.
    #[error("`hosts` cannot be in [defaults]: write the hosts of each server into its own table")]
    DefaultHosts,
    /// A value that a key cannot have.
    #[error("`{key}` is {found}: write {expected}")]
    Value { key: String, found: String, expected: String },
    /// A text that cannot be an argument of a process.
    #[error("`{key}` has a zero byte: take it out")]
    ZeroByte { key: String },
    /// A text that is longer than any that makes sense.
    #[error("`{key}` has more than {most} bytes: write less")]
    TooLong { key: String, most: usize },
    /// A quote in a command that does not end.
    #[error(
        "`{key}` is {found}, in which a quote is not closed: close it, or write a list of words"
    )]
    OpenQuote { key: String, found: String },
    /// An environment variable that no process can have.
    #[error("`environment` has the name {name}: write one with at least a letter and without `=`")]
    Variable { name: String },
    /// A resource that nobody could ask for.
    #[error("`resources` has the name {name}: write one of 1 to {most} bytes on one line")]
    Resource { name: String, most: usize },
    /// Memory has a key of its own.
    #[error("`resources` has `memory`: write memory = \"64 GB\" instead")]
    MemoryAsResource,
    /// A host that cannot be understood.
    #[error("`hosts` has {text}: {fault}")]
    Host { text: String, fault: HostFault },
    /// Two agents would be started on one host.
    #[error("`hosts` has {host:?} twice: name it once; \"{host}:8\" gives it 8 workers")]
    HostTwice { host: String },
    /// A list of hosts with nothing in it.
    #[error("`hosts` is empty: name at least one host")]
    EmptyHosts,
    /// A group without hosts.
    #[error(
        "there are no `hosts`: name them, as in hosts = [\"node1\", \"node2\"], or write \
         launcher = \"local\" for workers on this machine"
    )]
    NoHosts,
    /// Ranges that stand for more hosts than anybody has.
    #[error(
        "there are more than {most} hosts up to here: look for a slip in the ranges of `hosts`"
    )]
    TooManyHosts { most: u64 },
    /// More tables than a client can look after.
    #[error("there are more than {most} servers: put hosts that are alike into one")]
    TooManyServers { most: usize },
    /// A name that would make messages unreadable.
    #[error(
        "the name is {found}: choose one of 1 to 255 bytes without blanks and control characters"
    )]
    Name { found: String },
    /// A launcher of the owner's that is not named.
    #[error(
        "the launcher is \"program\", and no `command` says which: write the command that runs it"
    )]
    NoCommand,
    /// A key of another launcher.
    #[error(
        "`{key}` has no meaning for the launcher {launcher:?}, only for {fits}: take it out, or \
         choose another `launcher`"
    )]
    NotForLauncher { key: &'static str, launcher: &'static str, fits: &'static str },
    /// A URL of another kind.
    #[error(
        "is not the URL of a server: write ssh://HOST, local:, slurm:, gridengine:, htcondor:, mpi: or \
         program:COMMAND"
    )]
    Scheme,
    /// Neither a name of the file's nor a URL.
    #[error(
        "is neither a server of the file, which has {}, nor a URL as ssh://HOST or slurm:", listed(.names)
    )]
    NoServer { names: Vec<String> },
    /// A URL without a host.
    #[error("names no host: write it behind the slashes, as in ssh://node1")]
    NoHostInUrl,
    /// A part of a URL that means nothing.
    #[error(
        "has {found} behind the host, which means nothing: write ?directory=PATH for a directory"
    )]
    PathInUrl { found: String },
    /// A sequence `%..` that stands for nothing.
    #[error("has {found}: write % with two hexadecimal digits that stand for a byte of UTF-8")]
    Escape { found: String },
    /// A query that is none.
    #[error("has {found} in its query: write KEY=VALUE, with & between")]
    Query { found: String },
    /// A password, which ssh takes from nobody but a person.
    #[error("has a password, which ssh does not take: give ssh a key, and write ssh://user@host")]
    Password,
    /// A key that the URL says in another place.
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

/// How many names messages have at most.
const MOST_NAMED: usize = 10;

/// The first of these names.
pub fn listed(names: &[String]) -> String {
    let named = names[..names.len().min(MOST_NAMED)].join(", ");
    if names.len() > MOST_NAMED { format!("{named}, ...") } else { named }
}

/// `option`: how an option is written of the batch system that the group has.
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

/// All that is wrong with a file, in the order of its lines. There is at least one problem.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub struct Problems {
    /// The first of them, a hundred at most.
    pub told: Vec<Problem>,
    /// How many more there are.
    pub more: usize,
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.told.iter().enumerate() {
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
pub(super) struct Report<'t> {
    place: &'t str,
    /// Where lines end.
    ends: Vec<usize>,
    /// What is being read.
    pub(super) part: Part,
    found: Vec<Problem>,
}

impl<'t> Report<'t> {
    pub(super) fn new(place: &'t str, text: &str) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let ends = ends.map(|(at, _)| at).collect();
        Report { place, ends, part: Part::Whole, found: Vec::new() }
    }

    /// Something is wrong at this byte of the text.
    pub(super) fn add(&mut self, at: usize, fault: Fault) {
        let line = 1 + self.ends.partition_point(|end| *end < at);
        self.found.push(whole(self.place, line, self.part.clone(), fault));
    }

    /// Where the line of this byte begins.
    pub(super) fn line_start(&self, at: usize) -> usize {
        let before = self.ends.partition_point(|end| *end < at);
        before.checked_sub(1).map_or(0, |last| self.ends[last] + 1)
    }

    /// Whether nothing is wrong so far.
    pub(super) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// What has been made of the text, unless something is wrong with it.
    pub(super) fn finish<T>(self, made: T) -> Result<T, Problems> {
        let Report { mut found, .. } = self;
        if found.is_empty() {
            return Ok(made);
        }
        found.sort_by_key(|problem| problem.line);
        let more = found.len().saturating_sub(MOST_TOLD);
        found.truncate(MOST_TOLD);
        Err(Problems { told: found, more })
    }
}

fn whole(place: &str, line: usize, part: Part, fault: Fault) -> Problem {
    Problem { place: place.into(), line, part, fault: Box::new(fault) }
}

impl From<Problem> for Problems {
    fn from(problem: Problem) -> Problems {
        Problems { told: vec![problem], more: 0 }
    }
}

impl Problems {
    /// One problem of a file that cannot be looked into any further.
    pub(super) fn one(place: &str, line: usize, fault: Fault) -> Problems {
        Problems { told: vec![whole(place, line, Part::Whole, fault)], more: 0 }
    }
}
