//! The time of day, in the time zone of this machine.

use std::mem::MaybeUninit;

/// The day of the week, 0 for Monday, and the minute of the day.
#[must_use]
pub fn weekday_and_minute() -> (u8, u32) {
    // SAFETY: `time` accepts a null pointer.
    let now = unsafe { libc::time(std::ptr::null_mut()) };
    let mut fields = MaybeUninit::<libc::tm>::zeroed();
    // SAFETY: both point to values of this frame, and zeros are a valid `tm`.
    let fields = unsafe {
        libc::localtime_r(&raw const now, fields.as_mut_ptr());
        fields.assume_init()
    };
    let day = (fields.tm_wday.rem_euclid(7) as u8 + 6) % 7;
    let minute = (fields.tm_hour.clamp(0, 23) * 60 + fields.tm_min.clamp(0, 59)) as u32;
    (day, minute)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_day_is_that_of_date() {
        let date = || {
            let output =
                std::process::Command::new("date").arg("+%u %H %M").output().expect("date");
            let text = String::from_utf8(output.stdout).expect("digits");
            let fields: Vec<u32> =
                text.split_whitespace().map(|field| field.parse().expect("a number")).collect();
            (fields[0] as u8 - 1, fields[1] * 60 + fields[2])
        };
        let (before, now, after) = (date(), weekday_and_minute(), date());
        assert!(now == before || now == after, "{before:?} {now:?} {after:?}");
    }
}
