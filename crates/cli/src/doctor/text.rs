//! Text output of a report.

use std::fmt::Write as _;

use gridrpc_agent::inspect::{HostFindings, Python};

use crate::doctor::{Finding, FindingLevel, HostReport, Measured, Workers};

/// Indentation of a host's entries, and the width of their names.
const INDENT: usize = 2;
const NAMES: usize = 11;

/// All results for a host.
pub(super) fn details(report: &HostReport) -> String {
    let mut text = heading(report);
    let mut point = |name: &str, value: String| {
        let _ = writeln!(text, "{:INDENT$}{name:NAMES$}{value}", "");
    };
    if let Some(name) = &report.name {
        let at = match (name.through.as_str(), name.addresses.join(", ")) {
            ("", at) if at.is_empty() => "only its launcher knows where it is".to_owned(),
            ("", at) if at == name.host => at,
            ("", at) => format!("{} is {at}", name.host),
            (through, _) => format!("{} by way of {through}", name.host),
        };
        point("name", at);
    }
    if let Some(start) = &report.start {
        let copied = if start.copied { "; the program was copied there" } else { "" };
        point("agent", format!("came after {}{copied}", seconds(start.seconds)));
    }
    if let (Some(start), Some(there)) = (&report.start, &report.there) {
        let way = &there.way;
        let how = if start.through_ssh { "ssh's way back" } else { "this machine" };
        let encrypted = if start.encrypted { "encrypted" } else { "not encrypted" };
        // If all other addresses failed, that is a complaint of its own.
        let tried = way.tried.iter().filter(|_| !start.through_ssh);
        let tried: String = tried.map(|one| format!("; {}: {}", one.name, one.outcome)).collect();
        point("way", format!("reaches {how} at {}, {encrypted}{tried}", way.name));
    }
    if let Some(way) = &report.way {
        let (shortest, median) = (seconds(way.round_trip_min), seconds(way.round_trip_median));
        point("round trip", format!("{shortest} at best, {median} mostly"));
        let (to, from) = (rate(way.bandwidth_there), rate(way.bandwidth_back));
        point("bandwidth", format!("{to} there, {from} back"));
        point("clock", clock(way));
    }
    if let Some(there) = &report.there {
        for (name, value) in surroundings(there) {
            point(name, value);
        }
    }
    if let Some(workers) = &report.workers {
        point("workers", started(workers));
    }
    text + &render_findings(report)
}

/// Problems and notes of a host; empty if there are none.
pub(super) fn complaints(report: &HostReport) -> String {
    if report.complaints.is_empty() {
        String::new()
    } else {
        heading(report) + &render_findings(report)
    }
}

fn heading(report: &HostReport) -> String {
    let faults = report.complaints.iter().filter(|one| one.weight == FindingLevel::Fault).count();
    let how = match faults {
        0 => "is well".to_owned(),
        1 => "has a fault".to_owned(),
        faults => format!("has {faults} faults"),
    };
    format!("{} {how}\n", report.label())
}

fn surroundings(there: &HostFindings) -> Vec<(&'static str, String)> {
    let libc = there.libc.iter().map(|libc| format!(", {libc}")).collect::<String>();
    let bounded = if there.memory_bounded { ", bounded by its control group" } else { "" };
    let shared = if there.shared_memory_fault.is_none() { "can" } else { "cannot" };
    let processes = match there.processes.left {
        Some(left) => format!("{left} more ({})", there.processes.bound),
        None => "not bounded".to_owned(),
    };
    let memory = format!(
        "{}, {} free{bounded}; it {shared} be shared",
        size(there.memory),
        size(there.memory_free)
    );
    let mut all = vec![
        ("system", format!("{}{libc}, gridrpc {}", there.system, there.gridrpc)),
        ("processors", there.processors.to_string()),
        ("memory", memory),
        ("open files", format!("{} in a process", there.open_files)),
        ("processes", processes),
        (
            "staging",
            format!("{}, {} free", there.staging.folder.display(), size(there.staging.free)),
        ),
    ];
    all.extend(there.python.as_ref().map(|python| ("python", described(python))));
    all
}

fn described(python: &Python) -> String {
    let Python { command, version, gridrpc, numpy, cloudpickle, milliseconds, .. } = python;
    let Some(version) = version else { return format!("{command} does not run") };
    let packages = [("gridrpc", gridrpc), ("numpy", numpy), ("cloudpickle", cloudpickle)];
    let packages: String = packages
        .iter()
        .filter_map(|(name, version)| Some(format!(", {name} {}", version.as_ref()?)))
        .collect();
    format!(
        "{command} is {version}{packages}; answered after {}",
        seconds(*milliseconds as f64 / 1e3)
    )
}

fn clock(way: &Measured) -> String {
    let offset = way.clock_offset;
    let where_to = if offset < 0.0 { "behind" } else { "ahead" };
    format!("{} {where_to}, give or take {}", seconds(offset.abs()), seconds(way.clock_uncertainty))
}

fn started(workers: &Workers) -> String {
    let kind = if workers.python { "Python" } else { "native" };
    format!("{} {kind}, after {}", workers.ready, seconds(workers.seconds))
}

fn render_findings(report: &HostReport) -> String {
    let line = |complaint: &Finding| {
        let Finding { point, weight, what, advice } = complaint;
        let weight = match weight {
            FindingLevel::Note => "note",
            FindingLevel::Fault => "FAULT",
        };
        let point = point.name();
        let mut text = below(&format!("{weight}, {point}: {what}"));
        if !advice.is_empty() {
            text += &below(&format!("-> {advice}"));
        }
        text
    };
    report.complaints.iter().map(line).collect()
}

/// Indents a text of one or more lines.
fn below(text: &str) -> String {
    let mut lines = text.lines();
    let first = lines.next().map(|line| format!("{:INDENT$}{line}\n", ""));
    first.into_iter().chain(lines.map(|line| format!("{:INDENT$}  {line}\n", ""))).collect()
}

/// The final table.
pub(super) fn summary(reports: &[HostReport]) -> String {
    let heads = ["host", "", "agent", "round trip", "there", "back", "clock", "workers"];
    let mut rows = vec![heads.map(str::to_owned)];
    rows.extend(reports.iter().map(row));
    let widths: Vec<usize> = (0..heads.len())
        .map(|at| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or(0))
        .collect();
    let mut text = String::from("\n");
    for row in rows {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        let line = cells.collect::<Vec<_>>().join("  ");
        let _ = writeln!(text, "{}", line.trim_end());
    }
    let (all, ill) = (reports.len(), reports.iter().filter(|report| !report.is_well()).count());
    let verdict = match (all, ill) {
        (1, 0) => "the host is well".to_owned(),
        (_, 0) => format!("all {all} hosts are well"),
        (1, _) => "the host is not well: see above".to_owned(),
        _ => format!("{ill} of {all} hosts are not well: see above"),
    };
    let _ = writeln!(text, "\n{verdict}");
    text
}

fn row(report: &HostReport) -> [String; 8] {
    let none = || "-".to_owned();
    let way = report.way.as_ref();
    let points = |weight| {
        let complaints = report.complaints.iter().filter(move |one| one.weight == weight);
        let mut points: Vec<&str> = complaints.map(|one| one.point.name()).collect();
        points.dedup();
        points.join(", ")
    };
    let state = match (points(FindingLevel::Fault), points(FindingLevel::Note)) {
        (faults, _) if !faults.is_empty() => faults,
        (_, notes) if !notes.is_empty() => format!("well (note: {notes})"),
        _ => "well".to_owned(),
    };
    [
        report.label(),
        state,
        report.start.as_ref().map_or_else(none, |start| seconds(start.seconds)),
        way.map_or_else(none, |way| seconds(way.round_trip_median)),
        way.map_or_else(none, |way| rate(way.bandwidth_there)),
        way.map_or_else(none, |way| rate(way.bandwidth_back)),
        way.map_or_else(none, |way| {
            let sign = if way.clock_offset < 0.0 { '-' } else { '+' };
            format!("{sign}{}", seconds(way.clock_offset.abs()))
        }),
        report.workers.as_ref().map_or_else(none, |workers| {
            format!("{} in {}", workers.ready, seconds(workers.seconds))
        }),
    ]
}

/// A time with three significant digits.
fn seconds(value: f64) -> String {
    let (value, unit) = match value {
        value if value < 1e-3 => (value * 1e6, "µs"),
        value if value < 1.0 => (value * 1e3, "ms"),
        value => (value, "s"),
    };
    format!("{} {unit}", digits(value))
}

fn rate(value: f64) -> String {
    let (value, unit) = match value {
        value if value < 1e6 => (value / 1e3, "kB/s"),
        value if value < 1e9 => (value / 1e6, "MB/s"),
        value => (value / 1e9, "GB/s"),
    };
    format!("{} {unit}", digits(value))
}

fn size(bytes: u64) -> String {
    let value = bytes as f64;
    let (value, unit) = match bytes.checked_ilog2().unwrap_or(0) {
        0..20 => (value / 1024.0, "KiB"),
        20..30 => (value / f64::from(1 << 20), "MiB"),
        30..40 => (value / f64::from(1 << 30), "GiB"),
        _ => (value / (1_u64 << 40) as f64, "TiB"),
    };
    format!("{} {unit}", digits(value))
}

fn digits(value: f64) -> String {
    match value {
        value if value >= 99.95 => format!("{value:.0}"),
        value if value >= 9.995 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::report::{Point, Start};

    #[test]
    fn numbers_have_three_digits() {
        let times = [0.000_012_34, 0.25, 1.0, 99.96].map(seconds);
        assert_eq!(times, ["12.3 µs", "250 ms", "1.00 s", "100 s"]);
        assert_eq!([1.5e3, 2.5e8, 1.1e9].map(rate), ["1.50 kB/s", "250 MB/s", "1.10 GB/s"]);
        assert_eq!([0, 512 << 20, 3 << 40].map(size), ["0.00 KiB", "512 MiB", "3.00 TiB"]);
    }

    #[test]
    fn the_table_names_what_is_wrong() {
        let complaint = |point, weight| Finding {
            point,
            weight,
            what: "it is\nwrong".into(),
            advice: "do this".into(),
        };
        let mut well = HostReport { host: "a".into(), server: "a".into(), ..HostReport::default() };
        well.start = Some(Start { seconds: 0.5, ..Start::default() });
        well.complaints.push(complaint(Point::Clock, FindingLevel::Note));
        let mut ill = HostReport { host: "node".into(), server: "lab".into(), ..well.clone() };
        ill.complaints.push(complaint(Point::Python, FindingLevel::Fault));
        let table = summary(&[well, ill.clone()]);
        let lines: Vec<&str> = table.lines().collect();
        assert!(lines[2].starts_with("a         well (note: clock)  500 ms  -"), "{table}");
        assert!(lines[3].starts_with("lab/node  python              500 ms"), "{table}");
        assert_eq!(lines[5], "1 of 2 hosts are not well: see above");
        let render_findings = complaints(&ill);
        assert!(
            render_findings.starts_with(
                "lab/node has a fault\n  note, clock: it is\n    wrong\n  -> do this\n"
            )
        );
        assert!(render_findings.contains("  FAULT, python: it is\n"), "{render_findings}");
    }
}
