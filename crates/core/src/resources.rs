//! Resources: what calls request besides workers' places, such as memory, graphics processors or licences, and what
//! each host has of them. They are counted, not measured: a call takes its request from when it is sent until no
//! worker has it any more, and gives it back however it ends.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// The resource that is counted in bytes. Hosts report how much they have.
pub const MEMORY: &str = "memory";

/// A resource's name and amount.
type Named = (Arc<str>, u64);

/// Amounts of resources. Cheap to copy; most calls request none.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Resources(Option<Arc<[Named]>>);

impl Resources {
    /// No resources.
    pub const NONE: Resources = Resources(None);

    /// Creates resources from names and amounts. Amounts of the same name add up, and zero amounts are dropped.
    pub fn new(amounts: impl IntoIterator<Item = Named>) -> Resources {
        let mut all: BTreeMap<Arc<str>, u64> = BTreeMap::new();
        for (name, amount) in amounts.into_iter().filter(|(_, amount)| *amount > 0) {
            let sum = all.entry(name).or_default();
            *sum = sum.saturating_add(amount);
        }
        Resources((!all.is_empty()).then(|| all.into_iter().collect()))
    }

    /// Whether there are no resources.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// The names, in order, and their amounts.
    pub fn iter(&self) -> impl Iterator<Item = (&Arc<str>, u64)> {
        self.0.iter().flat_map(|all| all.iter()).map(|(name, amount)| (name, *amount))
    }
}

impl fmt::Display for Resources {
    /// Formats the resources: `2 of "gpu" and 4 GB of memory`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let format_amounts = |(name, amount): (&Arc<str>, u64)| match &**name {
            MEMORY => format!("{} of memory", Bytes(amount)),
            name => format!("{amount} of {name:?}"),
        };
        f.write_str(&listed(self.iter().map(format_amounts).collect()))
    }
}

/// Bytes, formatted in the largest unit that is exact to three decimals.
struct Bytes(u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(u64, &str); 4] =
            [(1_000_000_000_000, "TB"), (1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "KB")];
        match UNITS.iter().find(|(size, _)| self.0 >= *size) {
            None => write!(f, "{} bytes", self.0),
            Some((size, name)) => {
                let thousandths = u128::from(self.0) * 1000 / u128::from(*size);
                let (whole, part) = (thousandths / 1000, format!("{:03}", thousandths % 1000));
                match part.trim_end_matches('0') {
                    "" => write!(f, "{whole} {name}"),
                    part => write!(f, "{whole}.{part} {name}"),
                }
            }
        }
    }
}

/// A list in a sentence: `a, b and c`.
pub(crate) fn listed(mut things: Vec<String>) -> String {
    match things.pop() {
        None => "none".into(),
        Some(last) if things.is_empty() => last,
        Some(last) => format!("{} and {last}", things.join(", ")),
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Amount {
    has: u64,
    used: u64,
}

/// Resources of a host, and the amounts in use.
#[derive(Debug, Default)]
pub(crate) struct Available {
    amounts: BTreeMap<Arc<str>, Amount>,
}

impl Available {
    /// Sets the offered amounts.
    pub(crate) fn offer(&mut self, offered: &Resources) {
        self.amounts.values_mut().for_each(|amount| amount.has = 0);
        for (name, has) in offered.iter() {
            self.amounts.entry(Arc::clone(name)).or_default().has = has;
        }
    }

    /// The total amounts.
    pub(crate) fn all(&self) -> Resources {
        Resources::new(self.amounts.iter().map(|(name, amount)| (Arc::clone(name), amount.has)))
    }

    /// Whether the request fits when nothing is in use. `joined`: the host has reported its memory.
    pub(crate) fn could_give(&self, requested: &Resources, joined: bool) -> bool {
        requested.iter().all(|(name, amount)| match self.amounts.get(name) {
            None | Some(Amount { has: 0, .. }) => !joined && &**name == MEMORY,
            Some(there) => there.has >= amount,
        })
    }

    /// The amount lacking now, in thousandths of the request, with `claims` reserved for others; 0: nothing.
    pub(crate) fn lacks(&self, requested: &Resources, claims: &Claims) -> u64 {
        let lacks = |(name, amount): (&Arc<str>, u64)| {
            let there = self.amounts.get(name).copied().unwrap_or_default();
            let claimed = claims.0.get(name).copied().unwrap_or(0);
            let free = there.has.saturating_sub(there.used).saturating_sub(claimed);
            let missing = u128::from(amount.saturating_sub(free));
            (missing * 1000).div_ceil(u128::from(amount)) as u64
        };
        requested.iter().map(lacks).sum()
    }

    /// Of `places` places, the number that can run a call with this request if all calls were like it.
    pub(crate) fn share(&self, requested: &Resources, places: u64) -> u64 {
        let share = |(name, amount): (&Arc<str>, u64)| {
            let has = self.amounts.get(name).map_or(0, |there| there.has);
            let part = u128::from(places) * u128::from(amount);
            part.div_ceil(u128::from(has.max(amount))) as u64
        };
        requested.iter().map(share).max().unwrap_or(0)
    }

    pub(crate) fn take(&mut self, requested: &Resources) {
        for (name, amount) in requested.iter() {
            let there = self.amounts.entry(Arc::clone(name)).or_default();
            there.used = there.used.saturating_add(amount);
        }
    }

    pub(crate) fn give_back(&mut self, requested: &Resources) {
        for (name, amount) in requested.iter() {
            if let Some(there) = self.amounts.get_mut(name) {
                debug_assert!(there.used >= amount, "{name} is given back twice");
                there.used = there.used.saturating_sub(amount);
            }
        }
    }

    /// The amounts in use.
    pub(crate) fn used(&self) -> Resources {
        Resources::new(self.amounts.iter().map(|(name, amount)| (Arc::clone(name), amount.used)))
    }

    /// Whether no more is in use than there is.
    pub(crate) fn is_within(&self) -> bool {
        self.amounts.values().all(|amount| amount.used <= amount.has)
    }
}

/// Amounts of a host's resources claimed for calls that wait for more of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Claims(BTreeMap<Arc<str>, u64>);

impl Claims {
    pub(crate) fn add(&mut self, requested: &Resources) {
        for (name, amount) in requested.iter() {
            let claimed = self.0.entry(Arc::clone(name)).or_default();
            *claimed = claimed.saturating_add(amount);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some(amounts: &[(&str, u64)]) -> Resources {
        Resources::new(amounts.iter().map(|(name, amount)| (Arc::from(*name), *amount)))
    }

    fn available(amounts: &[(&str, u64)]) -> Available {
        let mut available = Available::default();
        available.offer(&some(amounts));
        available
    }

    #[test]
    fn they_are_reported_in_words() {
        let format_amounts = |amounts| some(amounts).to_string();
        assert_eq!(format_amounts(&[]), "none");
        assert_eq!(format_amounts(&[("gpu", 2), ("none", 0)]), "2 of \"gpu\"");
        let three = format_amounts(&[("memory", 4_500_000_000), ("licence:matlab", 1), ("gpu", 1)]);
        assert_eq!(three, "1 of \"gpu\", 1 of \"licence:matlab\" and 4.5 GB of memory");
        assert_eq!(format_amounts(&[("memory", 999)]), "999 bytes of memory");
        assert_eq!(format_amounts(&[("memory", u64::MAX)]), "18446744.073 TB of memory");
    }

    #[test]
    fn what_is_taken_lacks_until_it_is_given_back() {
        let mut available = available(&[("gpu", 2), ("memory", 100)]);
        let (none, call) = (Claims::default(), some(&[("gpu", 1), ("memory", 60)]));
        assert_eq!(available.lacks(&call, &none), 0);
        available.take(&call);
        assert_eq!(available.lacks(&call, &none), 334, "20 of 60 bytes");
        assert_eq!(available.lacks(&some(&[("gpu", 1)]), &none), 0);
        let mut claims = Claims::default();
        claims.add(&some(&[("gpu", u64::MAX)]));
        assert_eq!(available.lacks(&some(&[("gpu", 1)]), &claims), 1000);
        available.give_back(&call);
        assert_eq!((available.used(), available.lacks(&call, &none)), (Resources::NONE, 0));
    }

    #[test]
    fn memory_alone_is_not_known_before_a_host_joins() {
        let available = available(&[("gpu", 2)]);
        let could = |amounts, joined| available.could_give(&some(amounts), joined);
        assert!(could(&[("memory", u64::MAX)], false) && !could(&[("memory", 1)], true));
        assert!(could(&[("gpu", 2)], false) && !could(&[("gpu", 3)], false));
        assert!(!could(&[("licence", 1)], false));
    }

    #[test]
    fn a_call_that_takes_the_only_one_takes_all_places() {
        let available = available(&[("gpu", 2), ("memory", 100)]);
        let share = |amounts| available.share(&some(amounts), 8);
        assert_eq!((share(&[("gpu", 1)]), share(&[("gpu", 2)]), share(&[])), (4, 8, 0));
        assert_eq!(share(&[("gpu", 1), ("memory", 90)]), 8);
    }
}
