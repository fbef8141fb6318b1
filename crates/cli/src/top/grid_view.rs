//! Statistics of a grid.

use gridrpc_client::live::place::{self, SnapshotError, StatsAddress};

use super::choice::{self, GridSelector};
use super::error::TopError;
use super::rates::Rates;
use super::text;
use super::view::{Refreshed, View};

/// A grid that runs.
#[derive(Debug)]
pub(super) struct GridView {
    place: StatsAddress,
    /// Its name on the command line.
    called: String,
    rates: Rates,
}

impl GridView {
    /// The selected grid.
    pub(super) fn open(wanted: Option<&GridSelector>) -> Result<GridView, TopError> {
        let place = choice::one(wanted, &place::all())?;
        let called = choice::called(&place);
        match place.look() {
            Ok(first) => Ok(GridView { place, called, rates: Rates::new(first) }),
            Err(error) => Err(TopError::Look(called, error)),
        }
    }
}

impl View for GridView {
    fn name(&self) -> String {
        format!("the grid of process {}", self.called)
    }

    fn table(&self, columns: usize, lines: usize) -> String {
        text::table(&self.rates, columns, lines)
    }

    fn line(&self) -> String {
        text::line(&self.rates)
    }

    fn json(&self) -> String {
        self.rates.now.json()
    }

    fn refresh(&mut self) -> Result<Refreshed, TopError> {
        match self.place.look() {
            Ok(stats) => {
                self.rates.note(stats);
                Ok(Refreshed::New)
            }
            Err(SnapshotError::Gone) => Ok(Refreshed::Gone),
            // The grid resumes when its process does.
            Err(SnapshotError::Late) => Ok(Refreshed::Late),
            Err(error) => Err(TopError::Look(self.called.clone(), error)),
        }
    }
}
