//! Number formats, with the units and digits of gridbench (python/gridbench/formats.py).

/// Placeholder for an unknown value.
pub(super) const NOTHING: &str = "–";

/// A count: `12,345`, or `12.3 M` if it is long.
pub(super) fn count(number: u64) -> String {
    match number {
        ..10_000_000 => with_commas(number),
        _ => scaled(number as f64, &[("M", 1e6), ("G", 1e9), ("T", 1e12)]),
    }
}

/// A rate, followed by `/s`: `0`, `0.250`, `12.5`, `1.23 k`.
pub(super) fn rate(number: f64) -> String {
    match number {
        ..0.005 => "0".to_owned(),
        ..999.5 => digits(number),
        _ => scaled(number, &[("k", 1e3), ("M", 1e6), ("G", 1e9)]),
    }
}

/// Bytes: `0 B`, `1.50 kB`.
pub(super) fn bytes(number: f64) -> String {
    match number {
        ..999.5 => format!("{number:.0} B"),
        _ => scaled(number, &[("kB", 1e3), ("MB", 1e6), ("GB", 1e9), ("TB", 1e12)]),
    }
}

/// A duration from seconds: `12.5 ms`.
pub(super) fn time(seconds: f64) -> String {
    match seconds {
        ..0.0 => NOTHING.to_owned(),
        0.0 => "0 s".to_owned(),
        1000.0.. => clock(seconds),
        _ => scaled(seconds, &[("ns", 1e-9), ("µs", 1e-6), ("ms", 1e-3), ("s", 1.0)]),
    }
}

/// Elapsed time from seconds: `0:07`, `1:02:03`.
pub(super) fn clock(seconds: f64) -> String {
    let all = seconds.max(0.0) as u64;
    let (hours, minutes, seconds) = (all / 3600, all / 60 % 60, all % 60);
    match hours {
        0 => format!("{minutes}:{seconds:02}"),
        _ => format!("{hours}:{minutes:02}:{seconds:02}"),
    }
}

/// Formats a number with three digits, in the largest unit that leaves it at least 1.
fn scaled(number: f64, units: &[(&str, f64)]) -> String {
    let fits = |(_, size): &&(&str, f64)| number >= 0.9995 * size;
    let (unit, size) = units.iter().rev().find(fits).unwrap_or(&units[0]);
    format!("{} {unit}", digits(number / size))
}

/// Three significant digits, or all digits before the point.
fn digits(number: f64) -> String {
    match number {
        ..0.0995 => format!("{number:.4}"),
        ..0.9995 => format!("{number:.3}"),
        ..9.995 => format!("{number:.2}"),
        ..99.95 => format!("{number:.1}"),
        _ => with_commas(number.round() as u64),
    }
}

fn with_commas(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_few_digits_and_their_units() {
        assert_eq!([0, 999, 12_345, 9_999_999].map(count), ["0", "999", "12,345", "9,999,999"]);
        assert_eq!(count(12_345_678), "12.3 M");
        assert_eq!(
            [0.0, 0.004, 0.0123, 0.25, 0.99951, 12.5, 999.4, 999.5, 1234.4, 8.74e6].map(rate),
            ["0", "0", "0.0123", "0.250", "1.00", "12.5", "999", "1.00 k", "1.23 k", "8.74 M"]
        );
        assert_eq!(
            [0.0, 999.0, 999.6, 1500.0, 2.5e9, 3.4e15].map(bytes),
            ["0 B", "999 B", "1.00 kB", "1.50 kB", "2.50 GB", "3,400 TB"]
        );
        assert_eq!(
            [-1.0, 0.0, 5e-7, 12.3e-6, 0.0125, 0.9999, 75.0].map(time),
            ["–", "0 s", "500 ns", "12.3 µs", "12.5 ms", "1.00 s", "75.0 s"]
        );
        assert_eq!([time(3723.0), clock(59.9), clock(72.0)], ["1:02:03", "0:59", "1:12"]);
    }
}
