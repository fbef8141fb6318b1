//! Exponentially weighted average.

/// Weight of a new value.
const WEIGHT: f64 = 0.1;

/// An exponentially weighted average of positive numbers, such as the speed of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Average(Option<f64>);

impl Average {
    /// Adds a value. Values that are not positive and finite do not count: a clock may have stood still.
    pub fn add(&mut self, value: f64) {
        if value.is_finite() && value > 0.0 {
            self.0 = Some(self.0.map_or(value, |old| old + WEIGHT * (value - old)));
        }
    }

    /// The average; none: there is no value yet.
    #[must_use]
    pub fn get(self) -> Option<f64> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_follows_a_change_and_ignores_invalid_values() {
        let mut average = Average::default();
        assert_eq!(average.get(), None);
        average.add(8.0);
        assert_eq!(average.get(), Some(8.0));
        for invalid in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            average.add(invalid);
        }
        average.add(4.0);
        assert_eq!(average.get(), Some(7.6));
        (0..200).for_each(|_| average.add(4.0));
        assert!((average.get().unwrap() - 4.0).abs() < 1e-6);
    }
}
