//! How a grid and its hosts are getting on, for programs and for people.

use crate::grid::Grid;
use crate::hosts::states::{HostState, states};
use crate::live::{Stats, snapshot};

impl Grid {
    /// How all hosts are getting on, in the order of the groups.
    #[must_use]
    pub fn hosts(&self) -> Vec<HostState> {
        states(&self.common, &self.about.hosts)
    }

    /// What has been counted so far, and what is going on.
    #[must_use]
    pub fn stats(&self) -> Stats {
        snapshot(&self.common, &self.about)
    }
}
