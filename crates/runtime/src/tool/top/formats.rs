//! Numbers for people.

/// A count: `12,345`, and `12.3 M` when it is long.
pub(super) fn count(number: u64) -> String {
    if number < 10_000_000 {
        let digits = number.to_string();
        let mut text = String::new();
        for (at, digit) in digits.chars().enumerate() {
            if at > 0 && (digits.len() - at).is_multiple_of(3) {
                text.push(',');
            }
            text.push(digit);
        }
        return text;
    }
    scaled(number as f64, &[("k", 1e3), ("M", 1e6), ("G", 1e9), ("T", 1e12)])
}

/// So many per second: `0`, `0.25`, `12.5`, `1,234`.
pub(super) fn rate(number: f64) -> String {
    match number {
        ..0.005 => "0".to_owned(),
        ..10.0 => format!("{number:.2}"),
        ..100.0 => format!("{number:.1}"),
        _ => count(number.round() as u64),
    }
}

/// Bytes: `0 B`, `1.5 kB`.
pub(super) fn bytes(number: f64) -> String {
    match number {
        ..1000.0 => format!("{number:.0} B"),
        _ => scaled(number, &[("kB", 1e3), ("MB", 1e6), ("GB", 1e9), ("TB", 1e12)]),
    }
}

/// How long something takes, in s: `12.5 ms`.
pub(super) fn time(seconds: f64) -> String {
    match seconds {
        ..0.0 => "-".to_owned(),
        1000.0.. => clock(seconds),
        _ => scaled(seconds, &[("ns", 1e-9), ("us", 1e-6), ("ms", 1e-3), ("s", 1.0)]),
    }
}

/// How long something has lasted, in s: `1:02:03`.
pub(super) fn clock(seconds: f64) -> String {
    let all = seconds.max(0.0) as u64;
    format!("{}:{:02}:{:02}", all / 3600, all / 60 % 60, all % 60)
}

/// In the largest unit of which there is one, with three digits.
fn scaled(number: f64, units: &[(&str, f64)]) -> String {
    let fits = |(_, size): &&(&str, f64)| number >= 0.9995 * size;
    let (unit, size) = units.iter().rev().find(fits).unwrap_or(&units[0]);
    let number = number / size;
    match number {
        ..9.995 => format!("{number:.2} {unit}"),
        ..99.95 => format!("{number:.1} {unit}"),
        _ => format!("{number:.0} {unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_few_digits_and_their_units() {
        assert_eq!([0, 999, 12_345, 9_999_999].map(count), ["0", "999", "12,345", "9,999,999"]);
        assert_eq!(count(12_345_678), "12.3 M");
        assert_eq!([0.0, 0.25, 12.5, 1234.4].map(rate), ["0", "0.25", "12.5", "1,234"]);
        assert_eq!([0.0, 999.0, 1500.0, 2.5e9].map(bytes), ["0 B", "999 B", "1.50 kB", "2.50 GB"]);
        assert_eq!(
            [5e-7, 0.0125, 0.9999, 75.0].map(time),
            ["500 ns", "12.5 ms", "1.00 s", "75.0 s"]
        );
        assert_eq!([time(3723.0), clock(59.9)], ["1:02:03", "0:00:59"]);
    }
}
