//! `gridrpc top`: statistics of running grids and of servers, in the terminal, as JSON, and as a web page.

mod choice;
mod error;
mod formats;
mod grid_view;
mod rates;
mod screen;
mod server_view;
mod signals;
mod text;
mod view;
mod web;

use std::io::{self, Write as _};
use std::time::{Duration, Instant};

use clap::Args;

use choice::GridSelector;
use error::{TopError, print};
use grid_view::GridView;
use screen::Screen;
use server_view::ServerView;
use signals::Signals;
use view::{Refreshed, View};

/// Interval between updates.
const EVERY: Duration = Duration::from_secs(1);

/// Content and form of the display.
#[derive(Debug, Args)]
pub struct Options {
    /// The process whose grid to show, such as 4711, or 4711.2 for its second grid [default: the only grid that runs]
    #[arg(value_name = "PID")]
    wanted: Option<GridSelector>,
    /// Show the grid once, with averages since it was opened, and end
    #[arg(long)]
    once: bool,
    /// Print all values as JSON: a document per line, like `Grid.stats`
    #[arg(long)]
    json: bool,
    /// Serve a page about all grids, or those of PID, on this machine only, at PORT or a free port, to those who
    /// know its address. /metrics has the same for Prometheus
    #[arg(long, value_name = "PORT", num_args = 0..=1, default_missing_value = "0", conflicts_with_all = ["once", "json"])]
    web: Option<u16>,
    /// Show a server that many clients share: its users, queues, functions and workers. SERVER is the file with its
    /// configuration, on its machine, or its address as in gridrpc://HOST. Its live page is at its HTTP port
    #[arg(long, value_name = "SERVER", num_args = 0..=1, default_missing_value = crate::server::CONFIG, conflicts_with_all = ["wanted", "web"])]
    server: Option<String>,
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
    let mut view: Box<dyn View> = match &options.server {
        Some(server) => Box::new(ServerView::open(server)?),
        None => Box::new(GridView::open(options.wanted.as_ref())?),
    };
    if options.once {
        let text = match options.json {
            true => view.json() + "\n",
            false => view.table(screen::columns(), usize::MAX),
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
            Some(screen) => screen.show(&*view),
            None if options.json => print(&(view.json() + "\n")),
            None => print(&(view.line() + "\n")),
        }?;
        next += EVERY;
        // Check signals and keys at least once, even if an update took longer than the interval.
        loop {
            let left = next.saturating_duration_since(Instant::now());
            let quits = screen.as_ref().is_some_and(Screen::has_keys);
            match signals.wait(left, quits).map_err(|error| TopError::System("waiting", error))? {
                signals::TerminalEvent::Nothing => {}
                signals::TerminalEvent::Resized => {
                    if let Some(screen) = &mut screen {
                        screen.show(&*view)?;
                    }
                }
                signals::TerminalEvent::End => return Ok(()),
            }
            if left.is_zero() {
                break;
            }
        }
        // After a pause of this program, do not catch up on missed updates.
        next = next.max(Instant::now());
        is_new = match view.refresh()? {
            Refreshed::New => true,
            Refreshed::Late => false,
            Refreshed::Gone => {
                let shown = screen.is_some();
                drop(screen);
                return ended(&*view, shown);
            }
        };
    }
}

/// Nothing more is to come: on a terminal, the last statistics stay.
fn ended(view: &dyn View, shown: bool) -> Result<(), TopError> {
    if shown {
        print(&view.table(screen::columns(), usize::MAX))?;
    }
    let _ = writeln!(io::stderr(), "gridrpc: {} has ended", view.name());
    Ok(())
}
