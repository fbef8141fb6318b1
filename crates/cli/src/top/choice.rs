//! Selection of the grid to show.

use std::fmt;
use std::io;
use std::path::Path;
use std::str::FromStr;

use gridrpc_client::live::Stats;
use gridrpc_client::live::place::{self, StatsAddress};
use nix::unistd::{Uid, User, geteuid};
use thiserror::Error;

use crate::top::formats;

/// A process, and optionally one of its grids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct GridSelector {
    pid: u32,
    grid: Option<u32>,
}

impl FromStr for GridSelector {
    type Err = String;

    fn from_str(text: &str) -> Result<GridSelector, String> {
        let (pid, grid) = text.split_once('.').map_or((text, None), |(pid, n)| (pid, Some(n)));
        let number = |text: &str| text.parse::<u32>().ok().filter(|number| *number > 0);
        let wrong = || "give the number of a process, such as 4711 or 4711.2".to_owned();
        let grid = grid.map(|grid| number(grid).ok_or_else(wrong)).transpose()?;
        Ok(GridSelector { pid: number(pid).ok_or_else(wrong)?, grid })
    }
}

impl fmt::Display for GridSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.pid)?;
        self.grid.map_or(Ok(()), |grid| write!(f, ".{grid}"))
    }
}

/// Why no single grid is selected.
#[derive(Debug, Error)]
pub enum ChoiceError {
    /// No grid is running.
    #[error("none of your programs has a grid open on this machine")]
    None,
    /// Several grids match.
    #[error("{0} grids run: name one by its process\n{1}")]
    Several(usize, String),
    /// The process has no grid.
    #[error("process {0} has no grid{1}")]
    NotThere(String, String),
    /// The process belongs to another user.
    #[error("the grid of process {0} is {1}'s: only that user and root can look at it")]
    NotYours(String, String),
    /// The kernel does not list grids.
    #[error("grids are found in /proc/net/unix, which cannot be read: {0}")]
    NoList(String),
}

/// The grid's name on the command line.
pub(super) fn called(place: &StatsAddress) -> String {
    match place.grid {
        1 => place.pid.to_string(),
        grid => format!("{}.{grid}", place.pid),
    }
}

/// Whether a grid is selected; without a selection, all grids of this user are.
pub(super) fn is_meant(place: &StatsAddress, wanted: Option<&GridSelector>) -> bool {
    match wanted {
        Some(GridSelector { pid, grid }) => {
            place.pid == *pid && grid.is_none_or(|grid| place.grid == grid)
        }
        None => place.user == geteuid().as_raw(),
    }
}

/// The selected grid among all that run.
///
/// # Errors
/// When the selection does not match exactly one.
pub(super) fn one(
    wanted: Option<&GridSelector>,
    all: &io::Result<Vec<StatsAddress>>,
) -> Result<StatsAddress, ChoiceError> {
    let all = all.as_ref().map_err(|error| ChoiceError::NoList(error.to_string()))?;
    // Any user can listen under any name.
    let meant = all.iter().filter(|place| is_meant(place, wanted) && !place.is_impostor());
    let me = geteuid();
    let can_look = |place: &&StatsAddress| me.is_root() || place.user == me.as_raw();
    let (meant, of_others): (Vec<&StatsAddress>, Vec<&StatsAddress>) = meant.partition(can_look);
    if let ([], [other, ..]) = (&meant[..], &of_others[..]) {
        return Err(ChoiceError::NotYours(called(other), user(other.user)));
    }
    match (&meant[..], wanted) {
        ([one], _) => Ok((*one).clone()),
        ([], None) => Err(ChoiceError::None),
        ([], Some(wanted)) => {
            let there = Path::new("/proc").join(wanted.pid.to_string()).exists();
            let why = if there { "" } else { ": there is no such process" };
            Err(ChoiceError::NotThere(wanted.to_string(), why.to_owned()))
        }
        (several, _) => Err(ChoiceError::Several(several.len(), listed(several))),
    }
}

/// One line per grid.
fn listed(places: &[&StatsAddress]) -> String {
    let line = |place: &&StatsAddress| {
        let known = match place.look() {
            Ok(stats) => format!(
                "{} of {} workers busy, {}, {}",
                stats.busy,
                stats.workers,
                formats::clock(stats.uptime),
                stats.program
            ),
            Err(error) => error.to_string(),
        };
        format!("  {:>9}  {known}", called(place))
    };
    places.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn user(number: u32) -> String {
    let known = User::from_uid(Uid::from_raw(number)).ok().flatten();
    known.map_or_else(|| format!("user {number}"), |user| user.name)
}

/// Statistics of the selected grids that answer.
pub(super) fn all_stats(wanted: Option<&GridSelector>) -> Vec<Stats> {
    let places = place::all().unwrap_or_default();
    let mine = places.iter().filter(|place| is_meant(place, wanted));
    mine.filter_map(|place| place.look().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(user: u32, pid: u32, grid: u32) -> StatsAddress {
        StatsAddress { user, pid, grid }
    }

    #[test]
    fn processes_and_their_grids_are_named_by_numbers() {
        assert_eq!("4711".parse(), Ok(GridSelector { pid: 4711, grid: None }));
        assert_eq!("4711.2".parse(), Ok(GridSelector { pid: 4711, grid: Some(2) }));
        for wrong in ["", "0", "x", "1.", "1.0", "1.2.3", "-1"] {
            assert!(wrong.parse::<GridSelector>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn one_has_to_be_meant() {
        let me = geteuid().as_raw();
        let all = Ok(vec![place(me, 10, 1), place(me, 20, 1), place(me, 20, 3)]);
        let chosen = |text: &str| one(Some(&text.parse().expect("it is one")), &all);
        assert_eq!(chosen("10").expect("it has one"), place(me, 10, 1));
        assert_eq!(chosen("20.3").expect("it has it"), place(me, 20, 3));
        assert!(matches!(chosen("20"), Err(ChoiceError::Several(2, _))));
        assert!(matches!(one(None, &all), Err(ChoiceError::Several(3, _))));
        assert!(matches!(chosen("20.2"), Err(ChoiceError::NotThere(..))));
        assert!(matches!(one(None, &Ok(vec![place(me + 1, 10, 1)])), Err(ChoiceError::None)));
        assert_eq!(one(None, &Ok(vec![place(me, 9, 2)])).expect("there is one"), place(me, 9, 2));
    }
}
