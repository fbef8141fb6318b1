//! What follows the task's name: options, and values as people give them.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use lexopt::Arg;

use crate::failure::Failure;

/// Bytes that a size can have at most: a terabyte.
const MOST_BYTES: u64 = 1 << 40;
/// Longest duration of a task, s.
const MOST_SECONDS: f64 = 1e7;

/// The options of a task, one after the other.
pub struct OptionParser(lexopt::Parser);

impl OptionParser {
    /// Those in these arguments.
    pub fn new(arguments: impl Iterator<Item = OsString>) -> OptionParser {
        // The parser wants to own them.
        OptionParser(lexopt::Parser::from_args(arguments.collect::<Vec<_>>()))
    }

    /// The name of the next option, without dashes.
    pub fn next(&mut self) -> Result<Option<String>, Failure> {
        match self.0.next().map_err(wrong)? {
            None => Ok(None),
            Some(Arg::Long("help") | Arg::Short('h')) => Err(Failure::Help),
            Some(Arg::Long(name)) => Ok(Some(name.to_owned())),
            Some(other) => Err(wrong(other.unexpected())),
        }
    }

    /// The value of the option that came last, as it was given.
    fn text(&mut self, name: &str) -> Result<String, Failure> {
        let value = self.0.value().map_err(wrong)?;
        value.into_string().map_err(|_| Failure::Usage(format!("--{name}: is not UTF-8")))
    }

    /// A path, likewise.
    pub fn path(&mut self) -> Result<PathBuf, Failure> {
        self.0.value().map(PathBuf::from).map_err(wrong)
    }

    /// A whole number of at least `least` and at most `most`.
    pub fn whole(&mut self, name: &str, least: u64, most: u64) -> Result<u64, Failure> {
        let text = self.text(name)?;
        let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let value = text.parse().ok().filter(|value| plain && (least..=most).contains(value));
        value.ok_or_else(|| {
            let form = format!("a whole number from {least} to {most}");
            Failure::Usage(format!("--{name}: `{}` is not {form}", shown(&text)))
        })
    }

    /// Bytes of at least 1.
    pub fn size(&mut self, name: &str) -> Result<u64, Failure> {
        let text = self.text(name)?;
        size(&text).map_err(|what| {
            let hint = "give a size such as 4K, 1.5MB or 64M";
            Failure::Usage(format!("--{name}: `{}` {what}; {hint}", shown(&text)))
        })
    }

    /// Seconds.
    pub fn seconds(&mut self, name: &str) -> Result<Duration, Failure> {
        let text = self.text(name)?;
        seconds(&text).map_err(|what| Failure::Usage(format!("--{name}: {what}")))
    }

    /// Names with commas between them.
    pub fn list(&mut self, name: &str) -> Result<Vec<String>, Failure> {
        Ok(self.text(name)?.split(',').map(|part| part.trim().to_owned()).collect())
    }

    /// The option is none of this task's.
    pub fn unknown(name: &str) -> Failure {
        Failure::Usage(format!("there is no option --{}; --help lists them", shown(name)))
    }
}

/// Which of how many workers one is.
#[derive(Debug, Clone, Copy)]
pub struct WorkerIndex {
    /// From 0.
    pub worker: u32,
    /// How many there are; None: nobody said it.
    pub of: Option<u32>,
}

impl WorkerIndex {
    /// The only one there is.
    pub fn alone() -> WorkerIndex {
        WorkerIndex { worker: 0, of: None }
    }

    /// If the option is one of those that say it, take its value. Whether it is.
    pub fn take(&mut self, name: &str, words: &mut OptionParser) -> Result<bool, Failure> {
        match name {
            "worker" => self.worker = words.whole(name, 0, u64::from(u32::MAX - 1))? as u32,
            "of" => self.of = Some(words.whole(name, 1, u64::from(u32::MAX))? as u32),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// It is one of those that there are.
    pub fn check(self) -> Result<(), Failure> {
        match self.of {
            Some(of) if self.worker >= of => Err(Failure::Usage(format!(
                "--worker {} is none of --of {of} workers, which count from 0",
                self.worker
            ))),
            _ => Ok(()),
        }
    }
}

/// How long `sleep` is to sleep.
pub fn sleep(mut words: OptionParser) -> Result<Duration, Failure> {
    // A negative number is not to be taken for an option.
    let mut given =
        words.0.raw_args().map_err(wrong)?.map(|word| word.to_string_lossy().into_owned());
    match (given.next().as_deref(), given.next()) {
        (Some("--help" | "-h"), _) => Err(Failure::Help),
        (Some(text), None) => seconds(text).map_err(Failure::Usage),
        _ => Err(Failure::Usage("give the seconds, such as `sleep 1.5`".into())),
    }
}

fn wrong(error: lexopt::Error) -> Failure {
    Failure::Usage(format!("{error}; --help lists what there is"))
}

fn seconds(text: &str) -> Result<Duration, String> {
    let value = text.parse::<f64>().ok().filter(|value| (0.0..=MOST_SECONDS).contains(value));
    value.map(Duration::from_secs_f64).ok_or_else(|| {
        format!("`{}` is not a number of seconds from 0 to {MOST_SECONDS}", shown(text))
    })
}

/// Bytes, from `4096`, `4K`, `4kB`, `1.5 MiB`: a kilobyte is 1,024 bytes, as everywhere in gridbench.
fn size(text: &str) -> Result<u64, &'static str> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let unit = unit.strip_prefix(' ').unwrap_or(unit).to_ascii_uppercase();
    let bytes: u64 = match unit.as_str() {
        "" | "B" => 1,
        "K" | "KB" | "KIB" => 1 << 10,
        "M" | "MB" | "MIB" => 1 << 20,
        "G" | "GB" | "GIB" => 1 << 30,
        "T" | "TB" | "TIB" => 1 << 40,
        _ if text.starts_with("-") => return Err("is below 0"),
        _ => return Err("is not a size"),
    };
    let number: f64 = number.parse().map_err(|_| "is not a size")?;
    let size = (number * bytes as f64).round();
    if size < 1.0 {
        return Err("is nothing to work on");
    }
    if size > MOST_BYTES as f64 {
        return Err("is more than a terabyte");
    }
    Ok(size as u64)
}

/// A text as it may be in a message: one line, printable, not long.
fn shown(text: &str) -> String {
    let printable = text.chars().map(|c| if c.is_control() { '?' } else { c });
    let short: String = printable.clone().take(40).collect();
    if printable.count() > 40 { short + "..." } else { short }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_binary_units_in_any_case() {
        for (text, bytes) in [
            ("1", 1),
            ("4096B", 4096),
            ("4k", 4096),
            ("4 KB", 4096),
            ("4KiB", 4096),
            ("1.5M", 3 << 19),
            (".5g", 1 << 29),
            ("1T", 1 << 40),
        ] {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn what_is_no_size_is_reported() {
        for (text, what) in [
            ("", "is not a size"),
            ("K", "is not a size"),
            ("1.2.3M", "is not a size"),
            ("5X", "is not a size"),
            ("1e3", "is not a size"),
            ("nan", "is not a size"),
            ("-5K", "is below 0"),
            ("0", "is nothing to work on"),
            ("0.1", "is nothing to work on"),
            ("1.1T", "is more than a terabyte"),
            ("99999999999999999999999G", "is more than a terabyte"),
        ] {
            assert_eq!(size(text), Err(what), "{text}");
        }
    }

    #[test]
    fn seconds_are_finite_and_not_below_zero() {
        assert_eq!(seconds("1.5"), Ok(Duration::from_millis(1500)));
        assert_eq!(seconds("0"), Ok(Duration::ZERO));
        for text in ["-1", "nan", "inf", "1e99", "1s", ""] {
            assert!(seconds(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_worker_is_one_of_those_that_there_are() {
        assert!(WorkerIndex { worker: 3, of: Some(4) }.check().is_ok());
        assert!(WorkerIndex { worker: 4, of: Some(4) }.check().is_err());
        assert!(WorkerIndex { worker: 4, of: None }.check().is_ok());
    }
}
