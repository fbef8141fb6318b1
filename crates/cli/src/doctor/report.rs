//! What is found: facts about each host, and what is wrong there.

use gridrpc_agent::inspect::HostFindings;
use serde::{Serialize, Serializer};

/// What has been found about one host. What could not be looked at is none.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct HostReport {
    /// The name of its server.
    pub server: String,
    /// The host, as the configuration names it.
    pub host: String,
    /// Where it is.
    pub name: Option<Name>,
    /// How its agent was started.
    pub start: Option<Start>,
    /// What its agent tells.
    pub there: Option<HostFindings>,
    /// The way between here and there.
    pub way: Option<Measured>,
    /// Its workers.
    pub workers: Option<Workers>,
    /// What is wrong, or may matter.
    pub complaints: Vec<Complaint>,
}

/// Where a host is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Name {
    /// What ssh's configuration makes of the host's name, or that itself.
    pub host: String,
    /// Its addresses; none where somebody else looks them up.
    pub addresses: Vec<String>,
    /// By way of whom ssh goes there; empty: directly.
    pub through: String,
}

/// How an agent was started.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Start {
    /// How long it took from the request until the agent had shown its ticket, seconds.
    pub seconds: f64,
    /// Whether the program was copied there first.
    pub copied: bool,
    /// Where it came from.
    pub from: String,
    /// Whether it has come by the way back that ssh keeps open.
    pub through_ssh: bool,
    /// Whether its connection is encrypted.
    pub encrypted: bool,
}

/// What was measured over a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Measured {
    /// The shortest way there and back, seconds.
    pub round_trip_min: f64,
    /// The usual one, seconds.
    pub round_trip_median: f64,
    /// How far its clock is ahead of this machine's, seconds.
    pub clock_offset: f64,
    /// By how much that may be wrong, seconds.
    pub clock_uncertainty: f64,
    /// Bytes per second from here to there.
    pub bandwidth_there: f64,
    /// Bytes per second from there to here.
    pub bandwidth_back: f64,
}

/// The workers of a host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Workers {
    /// How many there were to be.
    pub wanted: u32,
    /// How many have answered.
    pub ready: u32,
    /// How long that took, seconds.
    pub seconds: f64,
    /// Whether they are Python workers; else they are native ones.
    pub python: bool,
}

/// Something that is wrong, or may matter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Complaint {
    /// What it is about.
    pub point: Point,
    /// How bad it is.
    pub weight: Weight,
    /// What it is.
    pub what: String,
    /// What to do about it.
    pub advice: String,
}

/// How bad something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Weight {
    /// Grids work with it.
    Note,
    /// Grids do not work with it.
    Fault,
}

/// What is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// The host's name.
    Name,
    /// Starting the agent, and its way to the client.
    Agent,
    /// Which way that is.
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
    /// Its name, one word.
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

impl Complaint {
    pub(super) fn fault(
        point: Point,
        what: impl Into<String>,
        advice: impl Into<String>,
    ) -> Complaint {
        Complaint { point, weight: Weight::Fault, what: what.into(), advice: advice.into() }
    }

    pub(super) fn note(
        point: Point,
        what: impl Into<String>,
        advice: impl Into<String>,
    ) -> Complaint {
        Complaint { point, weight: Weight::Note, what: what.into(), advice: advice.into() }
    }
}

impl HostReport {
    /// Whether grids work with this host.
    #[must_use]
    pub fn is_well(&self) -> bool {
        self.complaints.iter().all(|complaint| complaint.weight == Weight::Note)
    }

    /// `server/host`, or one of the two if they are the same.
    #[must_use]
    pub fn label(&self) -> String {
        if self.server == self.host {
            return self.host.clone();
        }
        format!("{}/{}", self.server, self.host)
    }
}
