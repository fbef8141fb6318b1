//! Report: facts and problems of each host.

use gridrpc_agent::inspect::HostFindings;
use serde::{Serialize, Serializer};

/// Results for one host. Anything that could not be examined is none.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct HostReport {
    /// The name of its group.
    pub server: String,
    /// The host's name in the configuration.
    pub host: String,
    /// Its resolved name.
    pub name: Option<Name>,
    /// How its agent started.
    pub start: Option<Start>,
    /// Its agent's findings.
    pub there: Option<HostFindings>,
    /// The measured connection.
    pub way: Option<Measured>,
    /// Its workers.
    pub workers: Option<Workers>,
    /// Problems and notes.
    pub complaints: Vec<Finding>,
}

/// A host's resolved name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Name {
    /// The host name after ssh's configuration has been applied.
    pub host: String,
    /// Its addresses; empty if they are looked up elsewhere.
    pub addresses: Vec<String>,
    /// The jump host that ssh uses; empty: none.
    pub through: String,
}

/// How an agent started.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Start {
    /// Time from the request until the agent presented its ticket, seconds.
    pub seconds: f64,
    /// Whether the program was copied first.
    pub copied: bool,
    /// The address that it connected from.
    pub from: String,
    /// Whether it connected through ssh's reverse tunnel.
    pub through_ssh: bool,
    /// Whether its connection is encrypted.
    pub encrypted: bool,
}

/// Measurements of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Measured {
    /// Shortest round trip, seconds.
    pub round_trip_min: f64,
    /// Median round trip, seconds.
    pub round_trip_median: f64,
    /// How far the host's clock is ahead of this machine's, seconds.
    pub clock_offset: f64,
    /// Uncertainty of the offset, seconds.
    pub clock_uncertainty: f64,
    /// Bytes per second to the host.
    pub bandwidth_there: f64,
    /// Bytes per second from the host.
    pub bandwidth_back: f64,
}

/// The workers of a host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Workers {
    /// Number of requested workers.
    pub wanted: u32,
    /// Number of workers that have answered.
    pub ready: u32,
    /// Time until they were ready, seconds.
    pub seconds: f64,
    /// Whether they are Python workers; otherwise they are native ones.
    pub python: bool,
}

/// A problem or note.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Its subject.
    pub point: Point,
    /// Its severity.
    pub weight: FindingLevel,
    /// The problem.
    pub what: String,
    /// The remedy.
    pub advice: String,
}

/// Severity of a complaint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FindingLevel {
    /// Grids work with it.
    Note,
    /// Grids do not work with it.
    Fault,
}

/// Subject of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// Looking up the host's name.
    Name,
    /// Starting the agent and connecting it to the client.
    Agent,
    /// The route of that connection.
    Route,
    /// The versions of both programs.
    Version,
    /// The clock.
    Clock,
    /// Memory.
    Memory,
    /// Open files.
    Files,
    /// Processes.
    Processes,
    /// The folder for programs and modules.
    Staging,
    /// The folder that workers run in.
    Directory,
    /// Python.
    Python,
    /// Starting workers.
    Workers,
}

impl Point {
    /// Its name, a single word.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Point::Name => "name",
            Point::Agent => "agent",
            Point::Route => "way",
            Point::Version => "version",
            Point::Clock => "clock",
            Point::Memory => "memory",
            Point::Files => "files",
            Point::Processes => "processes",
            Point::Staging => "staging",
            Point::Directory => "directory",
            Point::Python => "python",
            Point::Workers => "workers",
        }
    }
}

impl Serialize for Point {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl Finding {
    pub(super) fn fault(
        point: Point,
        what: impl Into<String>,
        advice: impl Into<String>,
    ) -> Finding {
        Finding { point, weight: FindingLevel::Fault, what: what.into(), advice: advice.into() }
    }

    pub(super) fn note(
        point: Point,
        what: impl Into<String>,
        advice: impl Into<String>,
    ) -> Finding {
        Finding { point, weight: FindingLevel::Note, what: what.into(), advice: advice.into() }
    }
}

impl HostReport {
    /// Whether grids work with this host.
    #[must_use]
    pub fn is_well(&self) -> bool {
        self.complaints.iter().all(|complaint| complaint.weight == FindingLevel::Note)
    }

    /// `server/host`, or just one of them if they are the same.
    #[must_use]
    pub fn label(&self) -> String {
        if self.server == self.host {
            return self.host.clone();
        }
        format!("{}/{}", self.server, self.host)
    }
}
