//! Values of keys: texts, numbers, times, choices, commands.

use std::fmt::{Debug, Display};
use std::time::Duration;

use gridrpc_core::MEMORY;
use gridrpc_sys::memory;
use toml::Spanned;
use toml::de::{DeInteger, DeTable, DeValue};

use super::problems::{Fault, Report};

/// Longest of most texts, bytes: more than any path has.
const LONGEST: usize = 4096;
/// Total size of a command's words, and of all environment variables, bytes. Both are passed to processes,
/// and the system limits their size.
const LONGEST_LIST: usize = 128 << 10;
/// Longest wall time of a job, seconds: ten years.
const LONGEST_JOB: u64 = 315_360_000;
/// Longest name of a resource, bytes.
const LONGEST_NAME: usize = 255;
/// How much of a value messages show, characters.
const MOST_SHOWN: usize = 60;

/// A key with its value.
#[derive(Clone, Copy)]
pub struct Entry<'a> {
    /// The key.
    pub key: &'a str,
    /// The value.
    pub value: &'a Spanned<DeValue<'a>>,
}

/// A text, formatted for messages.
#[must_use]
pub fn shown(text: &str) -> String {
    match text.char_indices().nth(MOST_SHOWN) {
        Some((end, _)) => format!("{:?}...", &text[..end]),
        None => format!("{text:?}"),
    }
}

/// A value, formatted for messages.
#[must_use]
pub fn found(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => shown(text),
        DeValue::Integer(number) => cut(&number.to_string()),
        DeValue::Float(number) => cut(&number.to_string()),
        DeValue::Boolean(value) => value.to_string(),
        DeValue::Datetime(_) => "a date".into(),
        DeValue::Array(_) => "a list".into(),
        DeValue::Table(_) => "a table".into(),
    }
}

fn cut(number: &str) -> String {
    match number.char_indices().nth(MOST_SHOWN) {
        Some((end, _)) => format!("{}...", &number[..end]),
        None => number.into(),
    }
}

fn whole(number: &DeInteger<'_>) -> Option<i64> {
    i64::from_str_radix(number.as_str(), number.radix()).ok()
}

impl<'a> Entry<'a> {
    /// Position of the value in the text.
    pub fn at(&self) -> usize {
        self.value.span().start
    }

    /// Error: the value is invalid.
    pub fn wrong(&self, expected: impl Into<String>) -> Fault {
        let found = found(self.value.get_ref());
        Fault::Value { key: self.key.into(), found, expected: expected.into() }
    }

    /// The items of a list, each with the key.
    pub fn items(&self) -> Option<impl Iterator<Item = Entry<'a>>> {
        let key = self.key;
        let list = self.value.get_ref().as_array()?;
        Some(list.iter().map(move |value| Entry { key, value }))
    }

    /// A text that is neither empty nor too long.
    pub fn text(&self) -> Result<String, Fault> {
        match self.value.get_ref().as_str() {
            None => Err(self.wrong("a text in quotes")),
            Some("") => Err(self.wrong("a text, or leave the key out")),
            Some(text) => self.argument(text),
        }
    }

    fn argument(&self, text: &str) -> Result<String, Fault> {
        if text.contains('\0') {
            return Err(Fault::ZeroByte { key: self.key.into() });
        }
        if text.len() > LONGEST {
            return Err(Fault::TooLong { key: self.key.into(), most: LONGEST });
        }
        Ok(text.into())
    }

    /// A whole number, 0 or more.
    pub(super) fn number(&self, most: u32) -> Result<u32, Fault> {
        let number = self.value.get_ref().as_integer().and_then(whole);
        let number = number.and_then(|number| u32::try_from(number).ok());
        let expected = format!("a whole number from 0 to {most}; 0 is one for each processor");
        number.filter(|number| *number <= most).ok_or_else(|| self.wrong(expected))
    }

    /// A whole number, 1 or more.
    pub fn count(&self, most: u32) -> Result<u32, Fault> {
        let number = self.value.get_ref().as_integer().and_then(whole);
        let number = number.and_then(|number| u32::try_from(number).ok());
        number
            .filter(|number| (1..=most).contains(number))
            .ok_or_else(|| self.wrong(format!("a whole number from 1 to {most}")))
    }

    /// A whole number from 1, or a minimum and a maximum: `"2-10"`, `{ min = 2, max = 10 }`.
    pub(super) fn range(&self, most: u32) -> Result<(Option<u32>, u32), Fault> {
        let (least, greatest) = match self.value.get_ref() {
            DeValue::String(text) => {
                let number = |text: &str| text.trim().parse::<u32>().ok();
                text.split_once('-').map_or((None, None), |(a, b)| (number(a), number(b)))
            }
            DeValue::Table(table) => {
                let number = |key| {
                    let number = table.get(key).and_then(|value| value.get_ref().as_integer());
                    number.and_then(whole).and_then(|number| u32::try_from(number).ok())
                };
                let is_whole = table.len() == 2;
                (number("min").filter(|_| is_whole), number("max"))
            }
            _ => return self.count(most).map(|count| (None, count)),
        };
        match (least, greatest) {
            (Some(least), Some(greatest))
                if least <= greatest && (1..=most).contains(&greatest) =>
            {
                Ok((Some(least), greatest))
            }
            _ => Err(self.wrong(format!(
                "a whole number from 1 to {most}, or the least and the most, as in \"0-10\" or \
                 {{ min = 0, max = 10 }}"
            ))),
        }
    }

    /// A whole number, 0 or more; 0 means none.
    pub fn least(&self, most: u32) -> Result<u32, Fault> {
        let number = self.value.get_ref().as_integer().and_then(whole);
        let number = number.and_then(|number| u32::try_from(number).ok());
        let number = number.filter(|number| *number <= most);
        number.ok_or_else(|| self.wrong(format!("a whole number from 0 to {most}")))
    }

    /// True or false.
    pub fn flag(&self) -> Result<bool, Fault> {
        self.value.get_ref().as_bool().ok_or_else(|| self.wrong("true or false"))
    }

    /// A text of one line, for use in a line of a script.
    pub fn line(&self) -> Result<String, Fault> {
        let text = self.text()?;
        let is_line = !text.contains(char::is_control);
        is_line.then_some(text).ok_or_else(|| self.wrong("a text of one line"))
    }

    /// A memory size in bytes, and in the syntax of batch systems.
    pub(super) fn memory(&self) -> Result<(u64, String), Fault> {
        let text = match self.value.get_ref() {
            DeValue::String(text) => Some(text.to_string()),
            DeValue::Integer(number) => whole(number).map(|number| number.to_string()),
            _ => None,
        };
        let size = text.as_deref().and_then(|text| {
            let is_theirs = is_memory(text);
            let bytes = if is_theirs { memory_of(text)? } else { memory::size(text)? };
            let written =
                if is_theirs { text.to_owned() } else { format!("{}M", bytes.div_ceil(1 << 20)) };
            Some((bytes, written))
        });
        size.ok_or_else(|| {
            self.wrong(
                "a size as in \"64 GB\" or \"16G\": a number with K, M, G or T, or of megabytes",
            )
        })
    }

    /// The amount of each resource on the hosts: a table of whole numbers.
    pub(super) fn resources(&self, report: &mut Report<'_>) -> Vec<(String, u64)> {
        let Some(table) = self.value.get_ref().as_table() else {
            let expected = "a table of whole numbers, as in { gpu = 2, \"licence:matlab\" = 1 }";
            report.add(self.at(), self.wrong(expected));
            return Vec::new();
        };
        let mut resources = Vec::new();
        for (name, value) in in_order(table) {
            let name_at = name.span().start;
            let name: &str = name.get_ref();
            if name == MEMORY {
                report.add(name_at, Fault::MemoryAsResource);
                continue;
            }
            if name.is_empty() || name.len() > LONGEST_NAME || name.contains(char::is_control) {
                report.add(name_at, Fault::Resource { name: shown(name), most: LONGEST_NAME });
                continue;
            }
            let entry = Entry { key: &format!("resources.{name}"), value };
            let number = value.get_ref().as_integer().and_then(whole);
            match number.and_then(|number| u64::try_from(number).ok()) {
                Some(number) => resources.push((name.to_owned(), number)),
                None => report.add(entry.at(), entry.wrong("a whole number from 0 on")),
            }
        }
        resources
    }

    /// Wall time of a job.
    pub(super) fn wall_time(&self) -> Result<Duration, Fault> {
        let seconds = match self.value.get_ref() {
            DeValue::String(text) => clock_time(text),
            DeValue::Integer(number) => {
                whole(number).and_then(|n| u64::try_from(n).ok()).map(Duration::from_secs)
            }
            _ => None,
        };
        seconds.filter(|time| (1..=LONGEST_JOB).contains(&time.as_secs())).ok_or_else(|| {
            self.wrong("a whole number of seconds, or a text as in \"08:00:00\" or \"2-12:00:00\"")
        })
    }

    /// A list of single-line texts, such as option names.
    pub(super) fn lines(&self) -> Result<Vec<String>, Fault> {
        const EXPECTED: &str = "a list of options, such as [\"--no-requeue\"]";
        let items = self.items().ok_or_else(|| self.wrong(EXPECTED))?;
        items.map(|item| item.line()).collect()
    }

    /// Names or files of modules.
    pub(super) fn modules(&self) -> Result<Vec<String>, Fault> {
        const EXPECTED: &str = "a list of modules, such as [\"lapack\", \"/opt/site/fft.so\"]";
        let items = self.items().ok_or_else(|| self.wrong(EXPECTED))?;
        items.map(|item| item.line()).collect()
    }

    /// Command options or settings: a list of single-line texts, each with a leading dash.
    pub(super) fn options(&self) -> Result<Vec<String>, Fault> {
        const EXPECTED: &str = "a list of options, such as [\"--qos=long\"]";
        let list = self.value.get_ref().as_array().ok_or_else(|| self.wrong(EXPECTED))?;
        let mut options = Vec::new();
        for value in list {
            let item = Entry { key: self.key, value };
            let text = value.get_ref().as_str().ok_or_else(|| item.wrong(EXPECTED))?;
            // HTCondor uses settings instead: `+Name = value`.
            let is_option = text.starts_with('-') || text.contains('=');
            if !is_option || text.contains(char::is_control) {
                return Err(item.wrong("options of one line, each with a dash in front"));
            }
            options.push(item.argument(text)?);
        }
        Ok(options)
    }

    /// A time in seconds.
    pub fn seconds(&self, least: f64, most: f64) -> Result<Duration, Fault> {
        let seconds = self.decimal().filter(|seconds| (least..=most).contains(seconds));
        seconds
            .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
            .ok_or_else(|| self.wrong(format!("seconds, a number from {least} to {most}")))
    }

    /// A number, whole or not.
    #[must_use]
    pub fn decimal(&self) -> Option<f64> {
        match self.value.get_ref() {
            DeValue::Integer(number) => whole(number).map(|number| number as f64),
            DeValue::Float(number) => number.as_str().parse().ok(),
            _ => None,
        }
    }

    /// A whole number.
    #[must_use]
    pub fn integer(&self) -> Option<i64> {
        self.value.get_ref().as_integer().and_then(whole)
    }

    /// One of a few words.
    pub fn choice<T: Copy>(&self, choices: &[(&'static str, T)]) -> Result<T, Fault> {
        let word = self.value.get_ref().as_str();
        let chosen = choices.iter().find(|(name, _)| Some(*name) == word);
        chosen.map(|(_, value)| *value).ok_or_else(|| {
            let near = gridrpc_idl::nearest(word.unwrap_or(""), choices.iter().map(|(n, _)| *n));
            let names: Vec<String> = choices.iter().map(|(name, _)| format!("{name:?}")).collect();
            match near {
                Some(near) => {
                    self.wrong(format!("one of {}: is {near:?} meant?", names.join(", ")))
                }
                None => self.wrong(format!("one of {}", names.join(", "))),
            }
        })
    }

    /// A command: a text split like in a shell, or a list of words.
    pub(super) fn words(&self) -> Result<Vec<String>, Fault> {
        const EXPECTED: &str = "a command: a text, or a list of texts";
        let words = match self.value.get_ref() {
            DeValue::String(text) => shlex::split(text)
                .ok_or_else(|| Fault::OpenQuote { key: self.key.into(), found: shown(text) })?,
            DeValue::Array(list) => list
                .iter()
                .map(|word| word.get_ref().as_str().map(str::to_owned))
                .collect::<Option<_>>()
                .ok_or_else(|| self.wrong(EXPECTED))?,
            _ => return Err(self.wrong(EXPECTED)),
        };
        if words.first().is_none_or(String::is_empty) {
            let expected = "the program's name and its arguments, or leave the key out";
            let found = "empty".into();
            return Err(Fault::Value { key: self.key.into(), found, expected: expected.into() });
        }
        if words.iter().any(|word| word.contains('\0')) {
            return Err(Fault::ZeroByte { key: self.key.into() });
        }
        if words.iter().map(String::len).sum::<usize>() > LONGEST_LIST {
            return Err(Fault::TooLong { key: self.key.into(), most: LONGEST_LIST });
        }
        Ok(words)
    }

    /// A list of texts or a single text, with positions.
    pub fn texts<F>(&self, expected: &str, report: &mut Report<'_, F>) -> Vec<(usize, &'a str)>
    where
        F: From<Fault> + Debug + Display,
    {
        let value: &'a DeValue<'a> = self.value.get_ref();
        if let Some(text) = value.as_str() {
            return vec![(self.at(), text)];
        }
        let Some(items) = self.items() else {
            report.add(self.at(), self.wrong(expected));
            return Vec::new();
        };
        let mut texts = Vec::new();
        for item in items {
            match item.value.get_ref().as_str() {
                Some(text) => texts.push((item.at(), text)),
                None => report.add(item.at(), item.wrong(expected)),
            }
        }
        texts
    }

    /// Names or addresses of this machine for agents.
    pub(super) fn addresses(&self, report: &mut Report<'_>) -> Vec<String> {
        const EXPECTED: &str = "a list of names and addresses, such as [\"10.0.0.1\"]";
        let mut addresses = Vec::new();
        for (at, text) in self.texts(EXPECTED, report) {
            let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
            let bare = bare.unwrap_or(text);
            let without_zone = bare.split('%').next().unwrap_or(bare);
            let is_address = without_zone.parse::<std::net::IpAddr>().is_ok();
            let is_odd = |c: char| c.is_whitespace() || c.is_control() || "[]/@:,".contains(c);
            let is_name = !bare.is_empty() && bare.len() <= 255 && !bare.contains(is_odd);
            if is_address || is_name {
                addresses.push(bare.into());
            } else {
                let expected = "a name or an address, without a port; those are in `ports`";
                let (key, found) = (self.key.into(), shown(text));
                report.add(at, Fault::Value { key, found, expected: expected.into() });
            }
        }
        addresses
    }

    /// A range of ports: a text, or a number for a single port.
    pub(super) fn ports(&self) -> Result<(u16, u16), Fault> {
        let port = |text: &str| {
            let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            text.parse().ok().filter(|port: &u16| is_number && *port > 0)
        };
        let ports = match self.value.get_ref() {
            DeValue::Integer(number) => whole(number)
                .and_then(|number| u16::try_from(number).ok())
                .filter(|port| *port > 0)
                .map(|port| (port, port)),
            DeValue::String(text) => {
                let (first, last) = text.split_once('-').unwrap_or((text, text));
                port(first.trim()).zip(port(last.trim()))
            }
            _ => None,
        };
        ports.filter(|(first, last)| first <= last).ok_or_else(|| {
            self.wrong("a port from 1 to 65535, or first and last, as in \"40000-40100\"")
        })
    }

    /// Environment variables: a table of texts, numbers and booleans.
    pub(super) fn variables(&self, report: &mut Report<'_>) -> Vec<(String, String)> {
        let Some(table) = self.value.get_ref().as_table() else {
            let expected = "a table, as in { OMP_NUM_THREADS = \"1\" }";
            report.add(self.at(), self.wrong(expected));
            return Vec::new();
        };
        let mut variables = Vec::new();
        for (name, value) in in_order(table) {
            let at = name.span().start;
            let name: &str = name.get_ref();
            if name.is_empty() || name.contains(['=', '\0']) {
                report.add(at, Fault::Variable { name: shown(name) });
                continue;
            }
            let key = &format!("environment.{name}");
            match (Entry { key, value }).variable() {
                Ok(value) => variables.push((name.to_owned(), value)),
                Err(fault) => report.add(value.span().start, fault),
            }
        }
        let bytes = |(name, value): &(String, String)| name.len() + value.len();
        if variables.iter().map(bytes).sum::<usize>() > LONGEST_LIST {
            let fault = Fault::TooLong { key: self.key.into(), most: LONGEST_LIST };
            report.add(self.at(), fault);
        }
        variables
    }

    fn variable(&self) -> Result<String, Fault> {
        match self.value.get_ref() {
            DeValue::String(text) if text.contains('\0') => {
                Err(Fault::ZeroByte { key: self.key.into() })
            }
            DeValue::String(text) => Ok(text.clone().into_owned()),
            DeValue::Integer(number) => {
                whole(number).map(|number| number.to_string()).ok_or_else(|| self.wrong("a text"))
            }
            DeValue::Float(number) => Ok(number.as_str().into()),
            DeValue::Boolean(value) => Ok(value.to_string()),
            _ => Err(self.wrong("a text, a number, true or false")),
        }
    }
}

/// The entries of a table in the order of the text.
#[must_use]
pub fn in_order<'a>(
    table: &'a DeTable<'a>,
) -> Vec<(&'a Spanned<std::borrow::Cow<'a, str>>, &'a Spanned<DeValue<'a>>)> {
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(name, _)| name.span().start);
    entries
}

/// Parses a wall time, `D-HH:MM:SS` or `HH:MM:SS`.
pub(super) fn clock_time(text: &str) -> Option<Duration> {
    let number = |text: &str| {
        let is_number = (1..=9).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
        text.parse::<u64>().ok().filter(|_| is_number)
    };
    let (days, rest) = match text.split_once('-') {
        Some((days, rest)) => (number(days)?, rest),
        None => (0, text),
    };
    let parts: Vec<u64> = rest.split(':').map(number).collect::<Option<_>>()?;
    let [hours, minutes, seconds] = parts[..] else { return None };
    let is_clock = minutes < 60 && seconds < 60;
    is_clock.then(|| Duration::from_secs(((days * 24 + hours) * 60 + minutes) * 60 + seconds))
}

/// Parses a batch system's memory size into bytes.
pub(super) fn memory_of(text: &str) -> Option<u64> {
    let unit = if text.ends_with(|last: char| last.is_ascii_digit()) { "M" } else { "" };
    memory::size(&format!("{text}{unit}"))
}

/// Whether a text is a memory size.
pub(super) fn is_memory(text: &str) -> bool {
    let digits = text.trim_end_matches(['K', 'M', 'G', 'T']);
    text.len() <= digits.len() + 1
        && (1..=15).contains(&digits.len())
        && digits.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_slurm_writes_them() {
        let seconds = |text| clock_time(text).map(|time| time.as_secs());
        assert_eq!(seconds("01:30:05"), Some(5405));
        assert_eq!(seconds("2-00:00:01"), Some(172_801));
        assert_eq!(seconds("100:00:00"), Some(360_000));
        for wrong in ["", "30", "30:00", "1:60:00", "1:00:60", "-1:00:00", "a-1:00:00", "1:0x:00"] {
            assert_eq!(seconds(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn memory_has_one_unit_at_most() {
        assert!(["0", "500", "500M", "16G", "1T"].into_iter().all(is_memory));
        assert!(!["", "G", "16GB", "16 G", "1.5G", "-1", "16g"].into_iter().any(is_memory));
    }
}
