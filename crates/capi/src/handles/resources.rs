//! Texts of resource attributes: `4 GB` of memory, `gpu=1, licence:matlab=2`.

use std::sync::Arc;

use gridrpc_core::{MEMORY, Resources};
use gridrpc_sys::memory;

use crate::failure::Failure;

/// Largest amount of any resource.
const MOST: u64 = i64::MAX as u64;
/// Longest name of a resource, bytes.
const LONGEST_NAME: usize = 255;

/// Reads an amount of memory such as `4 GB`, in bytes.
pub fn memory_bytes(text: &str) -> Result<u64, Failure> {
    memory::size(text).filter(|size| *size <= MOST).ok_or_else(|| {
        Failure::other(format!(
            "the attribute MEMORY is `{text}`: give a size such as `4 GB` or `512 MiB`"
        ))
    })
}

/// Writes an amount of memory.
pub fn memory_text(bytes: u64) -> String {
    format!("{bytes} B")
}

/// Reads amounts of resources such as `gpu=1, licence:matlab=2`.
pub fn amounts(text: &str) -> Result<Vec<(Arc<str>, u64)>, Failure> {
    let mut found: Vec<(Arc<str>, u64)> = Vec::new();
    if text.trim().is_empty() {
        return Ok(found);
    }
    for part in text.split(',') {
        let wrong = |why: &str| {
            let part = part.trim();
            Failure::other(format!("the attribute RESOURCES has `{part}`: {why}"))
        };
        let (name, amount) = part.rsplit_once('=').ok_or_else(|| {
            wrong("write NAME=NUMBER, such as `gpu=1`, and commas between several")
        })?;
        let name = name.trim();
        if name == MEMORY {
            return Err(wrong("set GRPC_HANDLE_ATTR_MEMORY instead"));
        }
        if !(1..=LONGEST_NAME).contains(&name.len()) {
            return Err(wrong(&format!("a name has 1 to {LONGEST_NAME} bytes")));
        }
        if found.iter().any(|(known, _)| **known == *name) {
            return Err(wrong("name each resource once"));
        }
        let amount = amount.trim().parse().ok().filter(|amount| *amount <= MOST);
        found.push((name.into(), amount.ok_or_else(|| wrong("give a whole number from 0 on"))?));
    }
    Ok(found)
}

/// Writes the amounts of all resources except memory.
pub fn amounts_text(resources: &Resources) -> String {
    let others = resources.iter().filter(|(name, _)| ***name != *MEMORY);
    others.map(|(name, amount)| format!("{name}={amount}")).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(text: &str) -> String {
        amounts(text).expect_err(text).detail
    }

    #[test]
    fn resources_are_named_with_their_amounts() {
        let found = Resources::new(amounts(" gpu = 1, licence:matlab=2,a=b=3, none=0").unwrap());
        assert_eq!(amounts_text(&found), "a=b=3,gpu=1,licence:matlab=2");
        assert!(amounts("").unwrap().is_empty() && amounts(" ").unwrap().is_empty());
    }

    #[test]
    fn what_is_no_amount_is_reported_with_a_remedy() {
        for (text, why) in [
            ("gpu", "has `gpu`: write NAME=NUMBER"),
            ("gpu=1,", "has ``: write NAME=NUMBER"),
            ("gpu=-1", "give a whole number"),
            ("gpu=1.5", "give a whole number"),
            ("gpu=", "give a whole number"),
            ("gpu=9223372036854775808", "give a whole number"),
            ("=1", "a name has 1 to 255 bytes"),
            ("gpu=1, gpu=2", "has `gpu=2`: name each resource once"),
            ("memory=1", "set GRPC_HANDLE_ATTR_MEMORY instead"),
        ] {
            assert!(problem(text).contains(why), "{}", problem(text));
        }
        assert!(problem(&format!("{}=1", "x".repeat(256))).contains("1 to 255 bytes"));
    }

    #[test]
    fn memory_has_a_unit_and_comes_back_in_bytes() {
        assert_eq!(memory_bytes("4 GB"), Ok(4_000_000_000));
        assert_eq!(memory_bytes(&memory_text(MOST)), Ok(MOST));
        for text in ["", "4", "4 XB", "-1 GB", "9223372036854775808 B", "99999999999 TB"] {
            assert!(memory_bytes(text).is_err(), "{text}");
        }
    }
}
