//! Times with their units, such as `30min`.

use std::time::Duration;

/// A time with its unit.
pub fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is not a time with its unit, such as 30min, 1h or 2d");
    let end = text.find(|letter: char| !letter.is_ascii_digit()).ok_or_else(wrong)?;
    let number: u64 = text[..end].parse().map_err(|_| wrong())?;
    let unit = match &text[end..] {
        "s" => 1,
        "min" => 60,
        "h" => 3600,
        "d" => 24 * 3600,
        _ => return Err(wrong()),
    };
    number.checked_mul(unit).filter(|time| *time > 0).map(Duration::from_secs).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_a_unit() {
        let seconds = |text| duration(text).map(|time| time.as_secs());
        assert_eq!(seconds("90s"), Ok(90));
        assert_eq!(seconds("30min"), Ok(1800));
        assert_eq!(seconds("2d"), Ok(172_800));
        for wrong in ["", "h", "5", "0h", "-1h", "1.5h", "1w", "99999999999999999999h"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }
}
