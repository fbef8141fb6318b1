//! Statistics of a grid and its hosts, for programs and people.

use crate::grid::Grid;
use crate::hosts::states::{HostState, states};
use crate::live::{Stats, snapshot};

impl Grid {
    /// The states of all hosts, in the order of the groups.
    #[must_use]
    pub fn hosts(&self) -> Vec<HostState> {
        states(&self.common, &self.about.hosts)
    }

    /// Counters and current activity.
    #[must_use]
    pub fn stats(&self) -> Stats {
        snapshot(&self.common, &self.about)
    }
}
