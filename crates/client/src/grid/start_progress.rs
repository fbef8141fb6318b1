//! Progress display while the program waits for hosts. On a terminal, one line that is rewritten in place and removed
//! at the end; in a log, a line for each change.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use gridrpc_sys::status_line::{self, Progress};

use crate::common::Common;
use crate::hosts::states::{HostState, Named, states};

/// Shorter starts are not reported.
const QUICK: Duration = Duration::from_secs(2);
/// Poll interval while waiting for hosts, and otherwise.
const LOOK: Duration = Duration::from_millis(250);
const LOOK_AT_ALL: Duration = Duration::from_secs(1);
/// Minimum interval between log lines.
const LOG: Duration = Duration::from_secs(30);
/// How long the line stays once the first workers are ready and the program may print something itself.
const BESIDE: Duration = Duration::from_secs(30);
/// Maximum line length, characters, if the terminal does not report its width.
const WIDE: usize = 100;
/// Thread that reports hosts that the program waits for. Dropping it ends the thread.
#[derive(Debug)]
pub(super) struct ProgressReporter {
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl ProgressReporter {
    /// Returns `None` if there is nothing to report or no thread is available.
    pub(super) fn start(
        progress: Progress,
        common: &Arc<Common>,
        hosts: &Arc<[Named]>,
    ) -> Option<ProgressReporter> {
        if hosts.is_empty() {
            return None;
        }
        let progress = progress.resolved();
        if !matches!(progress, Progress::Line | Progress::Log) {
            return None;
        }
        let (end, ended) = mpsc::channel();
        let (common, hosts) = (Arc::clone(common), Arc::clone(hosts));
        let mut telling = ReportState::new(progress);
        let run = move || {
            while ended.recv_timeout(telling.pause()) == Err(RecvTimeoutError::Timeout) {
                telling.report(Instant::now(), &states(&common, &hosts));
            }
            status_line::clear();
        };
        let thread = std::thread::Builder::new().name("gridrpc-progress".into()).spawn(run).ok()?;
        Some(ProgressReporter { end: Some(end), thread: Some(thread) })
    }
}

impl Drop for ProgressReporter {
    fn drop(&mut self) {
        drop(self.end.take());
        // A thread that panicked has nothing more to report.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// State of the report.
#[derive(Debug)]
struct ReportState {
    progress: Progress,
    /// Start of the wait for hosts.
    since: Option<Instant>,
    /// Time when the first workers were ready.
    works_since: Option<Instant>,
    logged: Option<Instant>,
    last: String,
}

impl ReportState {
    fn new(progress: Progress) -> ReportState {
        ReportState { progress, since: None, works_since: None, logged: None, last: String::new() }
    }

    /// Time until the next poll.
    fn pause(&self) -> Duration {
        if self.since.is_some() { LOOK } else { LOOK_AT_ALL }
    }

    fn report(&mut self, now: Instant, states: &[HostState]) {
        let Some(text) = self.text(now, states) else { return status_line::clear() };
        match self.progress {
            Progress::Line => {
                status_line::show(&text);
            }
            _ => status_line::write(&format!("{text}\n")),
        }
    }

    /// Text to write now, if any.
    fn text(&mut self, now: Instant, states: &[HostState]) -> Option<String> {
        let waits = states.iter().any(|one| matches!(one.state, "queued" | "starting"));
        let works = states.iter().any(|one| one.state == "ready");
        self.works_since = works.then(|| self.works_since.unwrap_or(now));
        if !waits {
            self.since = None;
            return None;
        }
        let since = *self.since.get_or_insert(now);
        let is_quick = now.duration_since(since) < QUICK;
        let has_work = self.works_since.is_some_and(|since| now.duration_since(since) > BESIDE);
        let text = summary(states);
        match self.progress {
            Progress::Line if is_quick || has_work => None,
            Progress::Line => {
                let seconds = now.duration_since(since).as_secs();
                Some(cut(&format!("gridrpc: {seconds} s: {text}"), width()))
            }
            _ => {
                let soon = self.logged.is_some_and(|logged| now.duration_since(logged) < LOG);
                if is_quick || soon || text == self.last {
                    return None;
                }
                self.logged = Some(now);
                self.last.clone_from(&text);
                Some(format!("gridrpc: {text}"))
            }
        }
    }
}

/// Number of hosts of each group in each state, and why some wait.
fn summary(states: &[HostState]) -> String {
    let mut groups: BTreeMap<&str, Vec<&HostState>> = BTreeMap::new();
    states.iter().for_each(|one| groups.entry(&one.group).or_default().push(one));
    let texts = groups.iter().map(|(group, hosts)| {
        let mut text = format!("{group}:");
        let mut first = true;
        for state in ["ready", "starting", "queued", "lost"] {
            let count = hosts.iter().filter(|one| one.state == state).count();
            if count > 0 {
                let comma = if first { "" } else { "," };
                let _ = write!(text, "{comma} {count} {state}");
                first = false;
            }
        }
        let reason = hosts.iter().filter(|one| one.state == "queued").find_map(|one| {
            let (_, reason) = one.detail.split_once(" (")?;
            reason.strip_suffix(')')
        });
        let loss = hosts.iter().find(|one| matches!(one.state, "starting" | "lost"));
        let loss = loss.map(|one| &*one.detail).filter(|detail| !detail.is_empty());
        if let Some(why) = reason.or(loss) {
            let _ = write!(text, " ({})", why.lines().next().unwrap_or_default());
        }
        text
    });
    texts.collect::<Vec<_>>().join("; ")
}

/// Width of the terminal, characters.
fn width() -> usize {
    let mut size = libc::winsize { ws_row: 0, ws_col: 0, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: the call writes no more than that structure.
    let done = unsafe { libc::ioctl(2, libc::TIOCGWINSZ, &mut size) };
    if done == 0 && size.ws_col > 20 { usize::from(size.ws_col) - 1 } else { WIDE }
}

fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some(_) => text.chars().take(most.saturating_sub(1)).chain(['…']).collect(),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(state: &'static str, detail: &str) -> HostState {
        HostState {
            group: "lab".into(),
            host: "lab-1".into(),
            state,
            ready: 0,
            workers: 0,
            detail: detail.to_owned(),
        }
    }

    #[test]
    fn hosts_are_counted_and_the_reason_is_reported() {
        let waits = host("queued", "is queued as job 3 (waiting for resources: Resources)");
        let states = [host("ready", ""), host("ready", ""), waits.clone(), waits];
        let text = "lab: 2 ready, 2 queued (waiting for resources: Resources)";
        assert_eq!(summary(&states), text);
        assert_eq!(
            summary(&[host("starting", "is starting on n1 (job 3)")]),
            "lab: 1 starting (is starting on n1 (job 3))"
        );
        assert_eq!(cut("abcdef", 4), "abc…");
    }

    #[test]
    fn a_line_comes_only_when_a_start_takes_long_and_goes_when_all_are_there() {
        let (mut telling, begin) = (ReportState::new(Progress::Line), Instant::now());
        let mut at = |seconds, state| {
            telling.text(begin + Duration::from_secs(seconds), &[host(state, "")]).is_some()
        };
        assert!(!at(0, "queued") && !at(1, "starting") && at(2, "queued") && at(90, "starting"));
        assert!(!at(91, "ready"));
        assert!(!at(100, "starting") && at(102, "starting"));
    }

    #[test]
    fn a_log_has_a_line_for_each_change_and_not_too_many() {
        let (mut telling, begin) = (ReportState::new(Progress::Log), Instant::now());
        let mut at = |seconds, state| {
            telling.text(begin + Duration::from_secs(seconds), &[host(state, "")]).is_some()
        };
        assert!(!at(0, "queued") && at(3, "queued") && !at(40, "queued"));
        assert!(at(41, "starting") && !at(42, "queued") && at(72, "queued"));
    }
}
