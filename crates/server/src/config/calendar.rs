//! Calendar: the number of workers of a module by hour and day of the week.

use gridrpc_config::{Entry, Fault};
use time::Weekday;
use toml::de::DeValue;

use super::fault::{ServerFault, ServerReport};
use super::keys::{MOST, each_key, number};
use super::schema;

const DAY: u32 = 24 * 60;
const DAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
const EXPECTED: &str = "a list such as [{ hours = \"20-06\", days = \"mon-fri\", workers = 8 }]";

/// Hours of some days of the week, and the number of workers during them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Period {
    /// The first minute, counted from midnight.
    from: u32,
    /// The minute after the last one, counted from midnight; up to `from`: on the next day.
    until: u32,
    /// Start days, Monday first.
    days: [bool; 7],
    /// Number of workers.
    pub workers: u32,
}

impl Period {
    /// Whether it includes this minute of the day, counted from midnight. Hours after midnight belong to the period's first day.
    #[must_use]
    pub fn contains(&self, day: Weekday, minute: u32) -> bool {
        let day = usize::from(day.number_days_from_monday());
        let (today, before) = (self.days[day], self.days[(day + 6) % 7]);
        if self.from < self.until {
            return today && (self.from..self.until).contains(&minute);
        }
        (today && (self.from..DAY).contains(&minute)) || (before && minute < self.until)
    }
}

/// The number of workers at this minute of the day: that of the first period that includes it. None: no period does.
#[must_use]
pub fn workers_at(calendar: &[Period], day: Weekday, minute: u32) -> Option<u32> {
    calendar.iter().find(|period| period.contains(day, minute)).map(|period| period.workers)
}

/// Reads the value of `calendar`.
pub(super) fn calendar(entry: &Entry<'_>, report: &mut ServerReport<'_>) -> Vec<Period> {
    let Some(items) = entry.items() else {
        report.add(entry.at(), entry.wrong(EXPECTED));
        return Vec::new();
    };
    let mut calendar = Vec::new();
    for item in items {
        let DeValue::Table(table) = item.value.get_ref() else {
            report.add(item.at(), item.wrong(EXPECTED));
            continue;
        };
        let (mut span, mut days, mut workers) = (None, [true; 7], None);
        let (mut has_span, mut has_workers) = (false, false);
        each_key(table, schema::PERIOD, report, |entry, _| {
            match entry.key {
                "hours" => {
                    has_span = true;
                    span = Some(hours(entry)?);
                }
                "days" => days = days_of(entry)?,
                _ => {
                    has_workers = true;
                    workers = Some(number(entry, 0, MOST)? as u32);
                }
            }
            Ok(())
        });
        if !has_span {
            let fault = ServerFault::Missing { key: "hours", example: "hours = \"20-06\"" };
            report.add(item.at(), fault);
        }
        if !has_workers {
            report.add(item.at(), ServerFault::Missing { key: "workers", example: "workers = 8" });
        }
        if let (Some((from, until)), Some(workers)) = (span, workers) {
            calendar.push(Period { from, until, days, workers });
        }
    }
    calendar
}

/// First and last minute of `"20-06"` or `"20:30-06:00"`.
fn hours(entry: &Entry<'_>) -> Result<(u32, u32), Fault> {
    let text = entry.value.get_ref().as_str();
    let span = text.and_then(|text| {
        let (from, until) = text.split_once('-')?;
        Some((minute(from)?, minute(until)?))
    });
    span.filter(|(from, until)| from != until && *from < DAY).ok_or_else(|| {
        entry.wrong("two different times of the day, as in \"20-06\" or \"20:30-06:00\"")
    })
}

fn minute(text: &str) -> Option<u32> {
    let digits = |text: &str| {
        let is_number = (1..=2).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
        text.parse::<u32>().ok().filter(|_| is_number)
    };
    let (hour, minute) = text.trim().split_once(':').unwrap_or((text.trim(), "0"));
    let (hour, minute) = (digits(hour)?, digits(minute)?);
    let total = hour * 60 + minute;
    (minute < 60 && total <= DAY).then_some(total)
}

/// Days as in `"mon-fri"` or `"sat,sun"`.
fn days_of(entry: &Entry<'_>) -> Result<[bool; 7], Fault> {
    let day = |name: &str| DAYS.iter().position(|day| *day == name.trim());
    let mut days = [false; 7];
    let mut read = |text: &str| {
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (mut at, last) = (day(first)?, day(last)?);
            days[at] = true;
            while at != last {
                at = (at + 1) % 7;
                days[at] = true;
            }
        }
        Some(())
    };
    let is_read = entry.value.get_ref().as_str().and_then(&mut read).is_some();
    let expected = "days as in \"mon-fri\" or \"sat,sun\"";
    is_read.then_some(days).ok_or_else(|| entry.wrong(expected))
}
