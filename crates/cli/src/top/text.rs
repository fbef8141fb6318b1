//! Statistics as text: a table that fits the terminal, and one line for a log.

use std::fmt::Write as _;

use gridrpc_client::live::{CallCounts, HostStats, Stats};

use crate::top::formats::{NOTHING, bytes, clock, count, rate, time};
use crate::top::rates::{CallRates, Rates};

/// Narrowest table; a narrower terminal cuts it off.
const NARROWEST: usize = 60;
/// Widest table, so that rows stay readable.
const WIDEST: usize = 120;
/// Width of the numeric columns.
const NUMBERS_OF_FUNCTION: usize = 43;
const NUMBERS_OF_HOST: usize = 51;
/// Lines of the table besides functions and hosts.
const OTHER_LINES: usize = 11;

/// A line for a log.
pub(super) fn line(rates: &Rates) -> String {
    let Stats { uptime, workers, busy, queued, running, losses, calls, .. } = &rates.now;
    let all = rates.all();
    format!(
        "{}  workers {busy}/{workers} busy  calls {} ({}/s)  running {running}  queued {queued}  errors {}  \
         lost workers {losses}  in {}/s  out {}/s",
        clock(*uptime),
        calls.ended(),
        rate(all.calls),
        calls.errors(),
        bytes(all.argument_bytes),
        bytes(all.result_bytes),
    )
}

/// The table, limited to this width and height.
pub(super) fn table(rates: &Rates, columns: usize, lines: usize) -> String {
    let columns = columns.clamp(NARROWEST, WIDEST);
    let mut text = head(rates, columns);
    let (functions, hosts) = (rates.functions(), rates.hosts());
    let room = lines.saturating_sub(OTHER_LINES);
    // There are usually few hosts; if both lists are long, each gets half.
    let for_hosts = hosts.len().min(room.saturating_sub(functions.len()).max(room / 2)).max(1);
    let for_functions = room.saturating_sub(for_hosts).max(1);

    let width = columns - NUMBERS_OF_FUNCTION;
    let _ = writeln!(
        text,
        "\n{:<width$} {:>9} {:>8} {:>8} {:>7} {:>6}",
        "FUNCTION", "CALLS", "CALLS/S", "MEAN", "WORKERS", "ERRORS"
    );
    let row = |(function, rates): &(&gridrpc_client::live::FunctionStats, CallRates)| {
        function_row(&function.name, &function.calls, rates, width)
    };
    push_rows(&mut text, functions.iter().map(row), for_functions, "functions");
    let width = columns - NUMBERS_OF_HOST;
    let _ = writeln!(
        text,
        "\n{:<width$} {:>8} {:>9} {:>6} {:>9} {:>8} {:>5}",
        "HOST", "STATE", "WORKERS", "BUSY", "CALLS", "CALLS/S", "LOST"
    );
    let rows = hosts.iter().map(|(host, rate)| host_row(host, *rate, width));
    push_rows(&mut text, rows, for_hosts, "hosts");
    let fit = |line: &str| line.trim_end().chars().take(columns).collect::<String>() + "\n";
    text.lines().map(fit).collect()
}

fn head(rates: &Rates, columns: usize) -> String {
    let Stats { pid, grid, program, host, uptime, .. } = &rates.now;
    let Stats { workers, ready, busy, queued, queued_bytes, running, losses, calls, .. } =
        &rates.now;
    let all = rates.all();
    let which = if *grid == 1 { pid.to_string() } else { format!("{pid}.{grid}") };
    let where_ = format!("process {which} on {host}, open for {}", clock(*uptime));
    let mut text = format!("{}\n{where_}\n\n", short(program, columns));
    let _ = writeln!(text, "workers  {busy} busy, {ready} of {workers} ready, {losses} lost");
    let _ = writeln!(
        text,
        "calls    {}/s; {} have ended, {} of them with an error, {} cancelled",
        rate(all.calls),
        count(calls.ended()),
        count(calls.errors()),
        count(calls.cancelled),
    );
    let waiting = bytes(*queued_bytes as f64);
    let _ = writeln!(text, "queue    {} wait ({waiting}), {} run", count(*queued), count(*running));
    let _ = writeln!(
        text,
        "bytes    arguments {}/s, results {}/s",
        bytes(all.argument_bytes),
        bytes(all.result_bytes),
    );
    text
}

fn function_row(name: &str, calls: &CallCounts, rates: &CallRates, width: usize) -> String {
    let answered = calls.returned + calls.raised;
    let mean = if answered > 0 { time(calls.seconds / answered as f64) } else { NOTHING.into() };
    format!(
        "{:<width$} {:>9} {:>8} {mean:>8} {:>7.2} {:>6}",
        short(name, width),
        count(calls.ended()),
        rate(rates.calls),
        rates.workers,
        count(calls.errors()),
    )
}

fn host_row(host: &HostStats, per_second: f64, width: usize) -> String {
    let HostStats { server, host: name, state, workers, ready, busy, calls, losses, .. } = host;
    let called = match &**server {
        server if server == name || server == "localhost" => name.clone(),
        server => format!("{server}/{name}"),
    };
    let workers = match workers {
        0 => NOTHING.to_owned(),
        all if ready == all => all.to_string(),
        all => format!("{ready} of {all}"),
    };
    format!(
        "{:<width$} {state:>8} {workers:>9} {busy:>6} {:>9} {:>8} {:>5}",
        short(&called, width),
        count(*calls),
        rate(per_second),
        count(*losses),
    )
}

pub(super) fn push_rows(
    text: &mut String,
    rows: impl ExactSizeIterator<Item = String>,
    most: usize,
    what: &str,
) {
    let all = rows.len();
    // The line with the number of hidden rows takes one.
    let shown = if all > most { most.saturating_sub(1) } else { all };
    for row in rows.take(shown) {
        text.push_str(&row);
        text.push('\n');
    }
    if shown < all {
        let _ = writeln!(text, "and {} more {what}", all - shown);
    }
}

/// Shortens a text to `most` characters and keeps the end of names. Replaces control characters.
pub(super) fn short(text: &str, most: usize) -> String {
    let clean: Vec<char> = text.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
    if clean.len() <= most {
        return clean.into_iter().collect();
    }
    let length = clean.len() - most.saturating_sub(3);
    "...".chars().chain(clean[length..].iter().copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use gridrpc_client::live::FunctionStats;

    fn stats(functions: usize, hosts: usize) -> Rates {
        let calls = CallCounts {
            submitted: 123_456_790,
            returned: 123_456_780,
            raised: 9,
            argument_bytes: 1 << 40,
            seconds: 1e7,
            ..Default::default()
        };
        let name = |n| format!("package.module_with_a_long_name/Class.method_with_a_long_name_{n}");
        let function = |n| FunctionStats { name: name(n), calls: calls.clone() };
        let host = |n| HostStats {
            server: "cluster".into(),
            host: format!("node{n}.example.org"),
            state: "unwanted".into(),
            workers: 128,
            ready: 128,
            busy: 128,
            calls: 123_456_789,
            losses: 12,
            ..Default::default()
        };
        Rates::new(Stats {
            program: "python \u{1b}[31m".to_owned() + &"x".repeat(200),
            host: "login".into(),
            uptime: 360_000.0,
            calls: calls.clone(),
            functions: (0..functions).map(function).collect(),
            hosts: (0..hosts).map(host).collect(),
            ..Default::default()
        })
    }

    #[test]
    fn a_table_is_as_wide_as_the_terminal_at_most_and_cuts_no_number() {
        for columns in [80, 100, 500] {
            let text = table(&stats(3, 3), columns, usize::MAX);
            let widest = text.lines().map(|line| line.chars().count()).max();
            assert!(widest.is_some_and(|widest| widest <= columns.min(WIDEST)), "{text}");
            assert!(!text.contains('\u{1b}'), "{text}");
            assert!(text.lines().any(|line| line.ends_with("  9")), "the errors are there: {text}");
            assert!(
                text.lines().any(|line| line.ends_with("  12")),
                "the losses are there: {text}"
            );
        }
    }

    #[test]
    fn a_table_is_as_high_as_the_terminal_at_most_and_tells_what_it_leaves_out() {
        for (functions, hosts) in [(1, 1), (200, 1), (1, 200), (200, 200)] {
            let text = table(&stats(functions, hosts), 80, 24);
            assert!(text.lines().count() <= 24, "{text}");
            assert_eq!(functions > 20, text.contains("more functions"), "{text}");
            assert_eq!(hosts > 20, text.contains("more hosts"), "{text}");
        }
    }

    #[test]
    fn a_line_is_one() {
        assert_eq!(line(&stats(1, 1)).lines().count(), 1);
    }
}
