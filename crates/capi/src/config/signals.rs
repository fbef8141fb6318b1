//! Signals by name, for `handling_signals`.

use nix::sys::signal::Signal;

use super::lines::Fault;

/// Signals that Ninf-G handles by default: HUP, INT and TERM.
pub(super) const BY_DEFAULT: [i32; 3] =
    [Signal::SIGHUP as i32, Signal::SIGINT as i32, Signal::SIGTERM as i32];

/// Parses signals by name, with or without SIG, or by number; or `none`. One pair of quotes may enclose
/// several.
pub(super) fn list(words: &[String]) -> Result<Vec<i32>, Fault> {
    let words: Vec<&str> = words.iter().flat_map(|word| word.split_whitespace()).collect();
    match &words[..] {
        [] => Err(Fault::new("has no value", "write signals such as `INT TERM`, or `none`")),
        ["none"] => Ok(Vec::new()),
        words => words.iter().map(|word| number(word)).collect(),
    }
}

fn number(word: &str) -> Result<i32, Fault> {
    let signal = match word.parse::<i32>() {
        Ok(number) => Signal::try_from(number).ok(),
        Err(_) => {
            let name = word.strip_prefix("SIG").unwrap_or(word);
            format!("SIG{name}").parse().ok()
        }
    };
    match signal {
        None => Err(Fault::new(
            format!("has no signal `{word}` to handle"),
            "write signals such as `INT TERM`, or `none`",
        )),
        Some(signal @ (Signal::SIGKILL | Signal::SIGSTOP)) => {
            Err(Fault::new(format!("has `{word}`, and {signal} cannot be handled"), "take it out"))
        }
        Some(signal) => Ok(signal as i32),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(Into::into).collect()
    }

    #[test]
    fn names_and_numbers() {
        assert_eq!(list(&words("SIGINT TERM 1")).unwrap(), [2, 15, 1]);
        assert_eq!(list(&["INT TERM".into(), "HUP".into()]).unwrap(), [2, 15, 1]);
        assert!(list(&words("none")).unwrap().is_empty());
    }

    #[test]
    fn what_is_no_signal() {
        for text in ["", "int", "0", "99999", "INT none", "KILL", "19"] {
            assert!(list(&words(text)).is_err(), "{text}");
        }
    }
}
