//! `gridrpc top`: statistics of running grids, in the terminal, as JSON, and as a web page.

mod choice;
mod error;
mod formats;
mod rates;
mod screen;
mod signals;
mod text;
mod web;

use std::io::{self, Write as _};
use std::time::{Duration, Instant};

use clap::Args;
use gridrpc_client::live::place::{self, LookError};

use choice::Wanted;
use error::{TopError, print};
use rates::Rates;
use screen::Screen;
use signals::Signals;

/// Interval between updates.
const EVERY: Duration = Duration::from_secs(1);

/// What is to be shown, and how.
#[derive(Debug, Args)]
pub struct Options {
    /// The process whose grid to show, such as 4711, or 4711.2 for its second grid [default: the only grid that runs]
    #[arg(value_name = "PID")]
    wanted: Option<Wanted>,
    /// Show the grid once, with averages since it was opened, and end
    #[arg(long)]
    once: bool,
    /// Print all values as JSON: a document per line, as `Grid.stats` tells it
    #[arg(long)]
    json: bool,
    /// Serve a page about all grids, or those of PID, on this machine alone, at PORT or at a free one, to those who
    /// know its address. /metrics has the same for Prometheus
    #[arg(long, value_name = "PORT", num_args = 0..=1, default_missing_value = "0", conflicts_with_all = ["once", "json"])]
    web: Option<u16>,
    #[command(flatten)]
    access: web::Access,
}

/// Shows the grid until it or the user ends it.
///
/// # Errors
/// When there is nothing to show.
pub fn run(options: &Options) -> Result<(), TopError> {
    let done = match options.web {
        Some(port) => web::serve(port, options.wanted.clone(), &options.access),
        None => show(options),
    };
    match done {
        // The reader of the output may close it.
        Err(TopError::System(_, error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

fn show(options: &Options) -> Result<(), TopError> {
    let place = choice::one(options.wanted.as_ref(), &place::all())?;
    let name = choice::called(&place);
    let mut rates = match place.look() {
        Ok(first) => Rates::new(first),
        Err(error) => return Err(TopError::Look(name, error)),
    };
    if options.once {
        let text = match options.json {
            true => rates.now.json() + "\n",
            false => text::table(&rates, screen::columns(), usize::MAX),
        };
        return print(&text);
    }
    let signals = Signals::new().map_err(|error| TopError::System("signals", error))?;
    let mut screen = (!options.json && screen::is_there()).then(Screen::open);
    let mut next = Instant::now();
    let mut is_new = true;
    loop {
        match &mut screen {
            _ if !is_new => Ok(()),
            Some(screen) => screen.show(&rates),
            None if options.json => print(&(rates.now.json() + "\n")),
            None => print(&(text::line(&rates) + "\n")),
        }?;
        next += EVERY;
        // Check signals and keys at least once, even if an update took longer than the interval.
        loop {
            let left = next.saturating_duration_since(Instant::now());
            let quits = screen.as_ref().is_some_and(Screen::has_keys);
            match signals.wait(left, quits).map_err(|error| TopError::System("waiting", error))? {
                signals::Heard::Nothing => {}
                signals::Heard::Resized => {
                    if let Some(screen) = &mut screen {
                        screen.show(&rates)?;
                    }
                }
                signals::Heard::End => return Ok(()),
            }
            if left.is_zero() {
                break;
            }
        }
        // After a pause of this program, do not catch up on missed updates.
        next = next.max(Instant::now());
        is_new = match place.look() {
            Ok(stats) => {
                rates.note(stats);
                true
            }
            Err(LookError::Gone) => {
                let shown = screen.is_some();
                drop(screen);
                return ended(&rates, &name, shown);
            }
            // The grid resumes when its process does.
            Err(LookError::Late) => false,
            Err(error) => return Err(TopError::Look(name, error)),
        };
    }
}

/// The grid has ended: on a terminal, its last statistics stay.
fn ended(rates: &Rates, name: &str, shown: bool) -> Result<(), TopError> {
    if shown {
        print(&text::table(rates, screen::columns(), usize::MAX))?;
    }
    let _ = writeln!(io::stderr(), "gridrpc: the grid of process {name} has ended");
    Ok(())
}
