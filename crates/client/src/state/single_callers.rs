//! Callers that make one call at a time and want to read the answers themselves.

/// Chooses the caller that may read answers.
#[derive(Debug, Default)]
pub(crate) struct SingleCallers {
    usual: Option<usize>,
    last: Option<usize>,
    /// How often another caller may come in between until the usual one is usual no more.
    credit: u32,
}

/// Maximum credit.
const MOST_CREDIT: u32 = 8;

impl SingleCallers {
    /// Whether this caller may read the answer to its call: the usual one, or another one that comes in between, if the
    /// grid's own thread `is_away`.
    pub(crate) fn may_lead(&mut self, caller: usize, is_away: bool) -> bool {
        let is_again = self.last.replace(caller) == Some(caller);
        if self.usual == Some(caller) {
            if is_again {
                self.credit = (self.credit + 1).min(MOST_CREDIT);
            }
            return true;
        }
        if self.credit > 1 {
            self.credit -= 1;
            return is_away;
        }
        (self.usual, self.credit) = (Some(caller), 1);
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_comes_in_between_does_not_displace_the_usual_caller() {
        let mut callers = SingleCallers::default();
        assert!(!callers.may_lead(1, true), "the first call of a caller");
        assert!((0..100).all(|_| callers.may_lead(1, true)));
        assert!(callers.may_lead(2, true), "nobody else reads its answer");
        assert!(!callers.may_lead(2, false));
        assert!(callers.may_lead(1, true));
    }

    #[test]
    fn callers_that_take_turns_do_not_lead() {
        let mut callers = SingleCallers::default();
        assert_eq!((0..100).filter(|_| callers.may_lead(1, true)).count(), 99);
        let led = (0..100).filter(|turn| callers.may_lead(turn % 2, true)).count();
        assert!(led < 20, "{led}");
        assert!((0..100).all(|turn| !callers.may_lead(turn % 2, true)));
    }
}
