//! Checks: problems in a report, each with a remedy.

use gridrpc_agent::inspect::python::Python;
use gridrpc_agent::inspect::{HostFindings, Staging};

use super::report::{Finding, HostReport, Measured, Point, Start};

/// Recommended free space for programs and modules, bytes.
const ROOM: u64 = 32 << 20;
/// Recommended memory per worker, bytes.
const FOR_A_WORKER: u64 = 32 << 20;
/// Open files of an agent: per worker, and in addition.
const FILES_EACH: u64 = 6;
const FILES: u64 = 64;
/// Processes and threads that an agent needs besides its workers.
const PROCESSES: u64 = 16;
/// The oldest Python that can run workers, as (major, minor).
const OLDEST: (u32, u32) = (3, 11);
/// Clock difference beyond which files appear to come from the future, seconds.
const SKEW: f64 = 1.0;

/// Checks a host for this many workers (0: one per processor). `python`: whether they run Python.
pub(super) fn check(report: &HostReport, workers: u32, python: bool) -> Vec<Finding> {
    let mut found = Vec::new();
    if let Some(start) = &report.start {
        found.extend(way(start, report.there.as_ref()));
    }
    if let Some(there) = &report.there {
        let workers = u64::from(if workers == 0 { there.processors } else { workers });
        found.extend(version(there));
        found.extend(memory(there, workers));
        found.extend(limits(there, workers));
        found.extend(folders(there));
        if python {
            found.extend(there.python.as_ref().and_then(python_fault));
        }
    }
    found.extend(report.way.as_ref().and_then(clock));
    found
}

fn way(start: &Start, there: Option<&HostFindings>) -> Option<Finding> {
    if !start.through_ssh {
        return None;
    }
    let tried = there.map(|there| there.way.tried.as_slice()).unwrap_or_default();
    let tried: Vec<String> =
        tried.iter().map(|one| format!("{}: {}", one.name, one.outcome)).collect();
    let none = if tried.is_empty() { String::new() } else { format!(" ({})", tried.join("; ")) };
    Some(Finding::note(
        Point::Route,
        format!(
            "it cannot reach this machine itself{none}, only by the way back that ssh keeps open, which is \
             slower: ssh encrypts all data once more"
        ),
        "let the firewall of this machine have it in at some ports, and name those by `ports` in grid.toml, \
         or name by `addresses` how this machine is reached from there",
    ))
}

fn version(there: &HostFindings) -> Option<Finding> {
    let own = env!("CARGO_PKG_VERSION");
    (there.gridrpc != own).then(|| {
        Finding::note(
            Point::Version,
            format!("gridrpc {} runs there, and {own} here", there.gridrpc),
            "leave `program` in grid.toml out to have this machine's copied there, or install the same",
        )
    })
}

fn memory(there: &HostFindings, workers: u64) -> Vec<Finding> {
    let mut found = Vec::new();
    if let Some(why) = &there.shared_memory_fault {
        found.push(Finding::fault(
            Point::Memory,
            format!("memory cannot be shared there: {why}"),
            "see that nothing forbids memfd_create, such as a container's seccomp profile, and that \
             `ulimit -f` is unlimited",
        ));
    }
    if there.memory_free < workers.saturating_mul(FOR_A_WORKER) {
        let bound = if there.memory_bounded { " in its control group" } else { "" };
        found.push(Finding::note(
            Point::Memory,
            format!(
                "{} of memory are free{bound}, which is little for {workers} workers",
                mebibytes(there.memory_free)
            ),
            "ask for fewer by `workers` in grid.toml, or see what else takes it",
        ));
    }
    found
}

fn limits(there: &HostFindings, workers: u64) -> Vec<Finding> {
    let mut found = Vec::new();
    let files = FILES + FILES_EACH.saturating_mul(workers);
    if there.open_files < files {
        found.push(Finding::fault(
            Point::Files,
            format!(
                "a process may have {} files open there, and its agent needs {files} for {workers} workers",
                there.open_files
            ),
            "raise the hard limit (`ulimit -Hn`) in /etc/security/limits.conf there, or ask for fewer by \
             `workers` in grid.toml",
        ));
    }
    let processes = PROCESSES.saturating_add(workers);
    if let Some(left) = there.processes.left.filter(|left| *left < processes) {
        let bound = &there.processes.bound;
        found.push(Finding::fault(
            Point::Processes,
            format!("{left} more processes can be started there ({bound}), too few for {workers} workers"),
            "raise that limit, end what runs there, or ask for fewer by `workers` in grid.toml",
        ));
    }
    found
}

fn folders(there: &HostFindings) -> Vec<Finding> {
    let mut found = Vec::new();
    let Staging { folder, free, fault } = &there.staging;
    let elsewhere = "make room, or name another folder there by `staging` in grid.toml";
    if let Some(why) = fault {
        let what = format!("programs and modules cannot be kept in `{}`: {why}", folder.display());
        let safe = "make it writable and see that there is room, or name another folder there by `staging` in \
                    grid.toml: it and all above it belong to you or root, and nobody else can write to them";
        found.push(Finding::fault(Point::Staging, what, safe));
    } else if *free < ROOM {
        let free = mebibytes(*free);
        let what =
            format!("`{}`, for programs and modules, has only {free} left", folder.display());
        found.push(Finding::fault(Point::Staging, what, elsewhere));
    }
    if let Some(why) = &there.directory_fault {
        found.push(Finding::fault(
            Point::Directory,
            format!("workers cannot run in the folder that is theirs: {why}"),
            "make it there, or name another by `directory` in grid.toml",
        ));
    }
    found
}

fn python_fault(python: &Python) -> Option<Finding> {
    let own = env!("CARGO_PKG_VERSION");
    let Python { command, version, gridrpc, .. } = python;
    let native = "; native workers need none: `--native` leaves it out here";
    let fault =
        |what: String, advice: String| Some(Finding::fault(Point::Python, what, advice + native));
    let why = || python.fault.clone().unwrap_or_default();
    let Some(version) = version else {
        return fault(why(), "name a Python there by `python` in grid.toml".into());
    };
    if minor(version).is_some_and(|version| version < OLDEST) {
        let (major, least) = OLDEST;
        return fault(
            format!("`{command}` is Python {version}, and gridrpc needs {major}.{least}"),
            "name a newer one by `python` in grid.toml".into(),
        );
    }
    let install = format!("run `{command} -m pip install gridrpc=={own}` there");
    match gridrpc {
        None => fault(format!("`{command}`: {}", why()), install),
        Some(there) if there != own => {
            fault(format!("`{command}` has gridrpc {there}, and here is {own}"), install)
        }
        Some(_) if python.fault.is_some() => fault(format!("`{command}`: {}", why()), install),
        Some(_) => None,
    }
}

fn clock(way: &Measured) -> Option<Finding> {
    if way.clock_offset.abs() - way.clock_uncertainty <= SKEW {
        return None;
    }
    let where_to = if way.clock_offset > 0.0 { "ahead of" } else { "behind" };
    Some(Finding::note(
        Point::Clock,
        format!("its clock is {:.1} s {where_to} this machine's", way.clock_offset.abs()),
        "have both synchronised (chrony, systemd-timesyncd): gridrpc does not mind, but times of files and \
         in logs contradict each other",
    ))
}

/// Reports Python versions that cannot exchange functions. `own`: this machine's version.
pub(super) fn compare(reports: &mut [HostReport], own: Option<&str>) {
    let Some(own) = own.and_then(minor) else { return };
    for report in reports {
        let python = report.there.as_ref().and_then(|there| there.python.as_ref());
        let version = python.and_then(|python| minor(python.version.as_deref()?));
        let Some(version) = version.filter(|version| *version != own) else { continue };
        let ((major, there), (_, here)) = (version, own);
        report.complaints.push(Finding::note(
            Point::Python,
            format!(
                "Python {major}.{there} runs there, and {}.{here} here: functions that are sent by value, \
                 such as lambdas and those of a script, may fail",
                own.0
            ),
            "name the same version by `python` in grid.toml, or keep functions in modules that both have",
        ));
    }
}

fn minor(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

fn mebibytes(bytes: u64) -> String {
    format!("{} MiB", bytes >> 20)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::FindingLevel;
    use gridrpc_agent::inspect::{Attempt, Processes, Route};

    fn well() -> HostReport {
        let own = env!("CARGO_PKG_VERSION");
        let python = Python {
            command: "python3".into(),
            version: Some("3.12.1".into()),
            gridrpc: Some(own.into()),
            numpy: Some("2.0".into()),
            cloudpickle: Some("3.0".into()),
            fault: None,
            milliseconds: 200,
        };
        let there = HostFindings {
            gridrpc: own.into(),
            processors: 4,
            memory: 8 << 30,
            memory_free: 4 << 30,
            open_files: 1024,
            staging: Staging { folder: "/home/a".into(), free: 1 << 40, fault: None },
            python: Some(python),
            ..HostFindings::default()
        };
        HostReport {
            there: Some(there),
            start: Some(Start::default()),
            way: Some(Measured::default()),
            ..HostReport::default()
        }
    }

    /// The complaints about a host with one change.
    fn findings(
        workers: u32,
        change: impl FnOnce(&mut HostFindings),
    ) -> Vec<(Point, FindingLevel, String)> {
        let mut report = well();
        change(report.there.as_mut().unwrap());
        let found = check(&report, workers, true).into_iter();
        found
            .map(|complaint| {
                assert!(!complaint.advice.is_empty(), "{complaint:?}");
                (complaint.point, complaint.weight, complaint.what)
            })
            .collect()
    }

    fn only(
        findings: Vec<(Point, FindingLevel, String)>,
        point: Point,
        weight: FindingLevel,
        part: &str,
    ) {
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert_eq!((findings[0].0, findings[0].1), (point, weight));
        assert!(findings[0].2.contains(part), "{findings:?}");
    }

    #[test]
    fn nothing_is_reported_of_a_host_that_is_well() {
        assert!(findings(0, |_| {}).is_empty());
    }

    #[test]
    fn limits_are_too_low_for_as_many_workers_as_are_wanted() {
        let (note, fault) = (FindingLevel::Note, FindingLevel::Fault);
        let few = |there: &mut HostFindings| there.open_files = 80;
        only(findings(0, few), Point::Files, fault, "80 files");
        let few = |there: &mut HostFindings| {
            there.processes = Processes { left: Some(19), bound: "`ulimit -u` is 40".into() };
        };
        only(
            findings(0, few),
            Point::Processes,
            fault,
            "19 more processes can be started there (`ulimit",
        );
        assert!(findings(3, few).is_empty());
        only(findings(0, |there| there.memory_free = 100 << 20), Point::Memory, note, "100 MiB");
        let forbidden = |there: &mut HostFindings| there.shared_memory_fault = Some("no".into());
        only(findings(0, forbidden), Point::Memory, fault, "shared");
    }

    #[test]
    fn folders_without_room_or_rights() {
        let fault = FindingLevel::Fault;
        only(
            findings(0, |there| there.staging.free = 1 << 20),
            Point::Staging,
            fault,
            "1 MiB left",
        );
        let refused = |there: &mut HostFindings| there.staging.fault = Some("Read-only".into());
        only(findings(0, refused), Point::Staging, fault, "Read-only");
        let missing = |there: &mut HostFindings| there.directory_fault = Some("No such".into());
        only(findings(0, missing), Point::Directory, fault, "No such");
    }

    #[test]
    fn pythons_that_will_not_do() {
        let with = |change: fn(&mut Python)| {
            findings(0, move |there| change(there.python.as_mut().unwrap()))
        };
        let (python, fault) = (Point::Python, FindingLevel::Fault);
        only(with(|found| found.version = Some("3.9.2".into())), python, fault, "needs 3.11");
        only(with(|found| found.gridrpc = Some("0.0.1".into())), python, fault, "gridrpc 0.0.1");
        only(
            with(|found| found.fault = Some("`import numpy` fails".into())),
            python,
            fault,
            "numpy",
        );
        let absent = |found: &mut Python| {
            (found.version, found.fault) = (None, Some("`p` cannot be run".into()));
        };
        only(with(absent), python, fault, "`p` cannot be run");
        let mut report = well();
        absent(report.there.as_mut().unwrap().python.as_mut().unwrap());
        assert!(check(&report, 0, false).is_empty());
    }

    #[test]
    fn pythons_of_other_versions_than_this_machines() {
        let mut reports = [well(), HostReport::default()];
        compare(&mut reports, Some("3.12.9"));
        assert!(reports[0].complaints.is_empty());
        compare(&mut reports, Some("3.11.2"));
        assert!(reports[0].complaints[0].what.contains("Python 3.12 runs there, and 3.11 here"));
        assert!(reports[0].is_well() && reports[1].complaints.is_empty());
    }

    #[test]
    fn ways_and_clocks() {
        let mut report = well();
        report.start.as_mut().unwrap().through_ssh = true;
        let tried = vec![Attempt { name: "10.0.0.1:9".into(), outcome: "no answer".into() }];
        report.there.as_mut().unwrap().way = Route { tried, ..Route::default() };
        report.way.as_mut().unwrap().clock_offset = -7.0;
        let found = check(&report, 0, true);
        assert!(found.iter().all(|complaint| complaint.weight == FindingLevel::Note));
        assert!(
            found[0].what.contains("10.0.0.1:9: no answer") && found[0].what.contains("slower")
        );
        assert!(found[1].what.contains("7.0 s behind"), "{found:?}");
    }
}
