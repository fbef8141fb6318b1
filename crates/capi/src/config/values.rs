//! Values of attributes: one or more words, numbers, times, choices.

use std::time::Duration;

use super::lines::Fault;

/// Longest time: a thousand years, s. Keeps sums far from overflow.
const MAX_SECONDS: u64 = 1000 * 366 * 24 * 3600;

/// The single word of a value.
pub fn word(words: &[String]) -> Result<&str, Fault> {
    match words {
        [] => Err(Fault::new("has no value", "write the value behind the name, on the same line")),
        [word] if word.is_empty() => Err(Fault::new("has an empty value", "give it a value")),
        [word] => Ok(word),
        [_, second, ..] => Err(Fault::new(
            format!("has more than one value: what is `{second}`?"),
            "one attribute per line; put a value with blanks into double quotes",
        )),
    }
}

/// `true` or `false`.
pub fn boolean(words: &[String]) -> Result<bool, Fault> {
    match word(words)? {
        "true" => Ok(true),
        "false" => Ok(false),
        other => Err(Fault::new(format!("is `{other}`"), "write `true` or `false`")),
    }
}

/// A whole number in a range, bounds included.
pub fn integer(words: &[String], least: i64, most: i64) -> Result<i64, Fault> {
    let text = word(words)?;
    match text.parse::<i64>() {
        Ok(value) if (least..=most).contains(&value) => Ok(value),
        _ => Err(Fault::new(
            format!("is `{text}`"),
            match (least, most) {
                (i64::MIN, i64::MAX) => "write a whole number".to_string(),
                (least, i64::MAX) => format!("write a whole number, {least} or above"),
                (least, most) => format!("write a whole number from {least} to {most}"),
            },
        )),
    }
}

/// A log level: a number, or its name in Ninf-G 5.
pub fn log_level(words: &[String]) -> Result<u8, Fault> {
    const NAMES: [&str; 6] = ["Off", "Fatal", "Error", "Warning", "Information", "Debug"];
    let text = word(words)?;
    let named = NAMES.iter().position(|name| *name == text);
    let level = named.and_then(|level| u8::try_from(level).ok()).or_else(|| text.parse().ok());
    level.filter(|level| *level <= 5).ok_or_else(|| {
        Fault::new(
            format!("is `{text}`"),
            format!("write a whole number from 0 to 5, or {}", NAMES.join(", ")),
        )
    })
}

/// A time: a number of seconds, or a number with a unit and an optional blank.
pub fn seconds(words: &[String]) -> Result<Duration, Fault> {
    let joined = words.join(" ");
    if joined.is_empty() {
        word(words)?;
    }
    let fault = || {
        Fault::new(
            format!("is `{joined}`"),
            "write a time such as `30`, `30 seconds`, `5 min` or `2 hours`; 0 means no limit",
        )
    };
    if words.len() > 2 {
        return Err(fault());
    }
    let digits = joined.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = joined.split_at(digits);
    let number: u64 = number.parse().map_err(|_| fault())?;
    let unit: u64 = match unit.trim() {
        "" | "s" | "sec" | "secs" | "second" | "seconds" => 1,
        "m" | "min" | "mins" | "minute" | "minutes" => 60,
        "h" | "hour" | "hours" => 3600,
        _ => return Err(fault()),
    };
    match number.checked_mul(unit) {
        Some(value) if value <= MAX_SECONDS => Ok(Duration::from_secs(value)),
        _ => Err(fault()),
    }
}

/// A time limit; 0 means unlimited.
pub fn limit(words: &[String]) -> Result<Option<Duration>, Fault> {
    Ok(Some(seconds(words)?).filter(|time| !time.is_zero()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(Into::into).collect()
    }

    #[test]
    fn times_with_units() {
        for (text, expected) in [
            ("0", 0),
            ("60", 60),
            ("60s", 60),
            ("60 seconds", 60),
            ("1 sec", 1),
            ("5min", 300),
            ("1 minute", 60),
            ("2 hours", 7200),
            ("1h", 3600),
        ] {
            assert_eq!(seconds(&words(text)).unwrap(), Duration::from_secs(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_time() {
        for text in ["", "s", "-1", "1.5", "1 day", "1 2", "1 m s", "99999999999999999999", "∞"] {
            assert!(seconds(&words(text)).is_err(), "{text}");
        }
        assert!(seconds(&words("18446744073709551615 hours")).is_err());
    }

    #[test]
    fn no_limit_is_written_as_0() {
        assert_eq!(limit(&words("0")).unwrap(), None);
        assert_eq!(limit(&words("1")).unwrap(), Some(Duration::from_secs(1)));
    }

    #[test]
    fn numbers_tell_their_range() {
        assert_eq!(integer(&words("-1"), -1, 5).unwrap(), -1);
        assert_eq!(
            integer(&words("7"), 0, 5).unwrap_err().hint,
            "write a whole number from 0 to 5"
        );
        assert_eq!(
            integer(&words("x"), 0, i64::MAX).unwrap_err().hint,
            "write a whole number, 0 or above"
        );
    }

    #[test]
    fn one_word_only() {
        assert_eq!(word(&words("")).unwrap_err().message, "has no value");
        assert_eq!(word(&["".to_string()]).unwrap_err().message, "has an empty value");
        assert!(word(&words("a b")).unwrap_err().message.contains("what is `b`?"));
        assert!(boolean(&words("true")).unwrap());
        assert!(boolean(&words("True")).is_err());
    }
}
