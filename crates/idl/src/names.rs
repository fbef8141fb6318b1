//! Names: reserved words and suggestions.

/// Whether the name is a keyword in any current C standard.
pub(crate) fn is_c_keyword(name: &str) -> bool {
    const KEYWORDS: [&str; 46] = [
        "auto", "break", "case", "char", "const", "continue", "default", "do", "double", "else",
        "enum", "extern", "float", "for", "goto", "if", "inline", "int", "long", "register",
        "restrict", "return", "short", "signed", "sizeof", "static", "struct", "switch", "typedef",
        "union", "unsigned", "void", "volatile", "while", "asm", "typeof",
        // The stub includes <stdint.h> and uses these.
        "int8_t", "int16_t", "int32_t", "int64_t", "uint8_t", "uint16_t", "uint32_t", "uint64_t",
        "size_t", "NULL",
    ];
    KEYWORDS.contains(&name)
        || (name.starts_with('_') && name[1..].starts_with(|c: char| c.is_ascii_uppercase()))
}

/// Whether the name is an additional keyword of C++.
pub(crate) fn is_cpp_keyword(name: &str) -> bool {
    const KEYWORDS: [&str; 42] = [
        "alignas",
        "alignof",
        "and",
        "bool",
        "catch",
        "char8_t",
        "char16_t",
        "char32_t",
        "class",
        "concept",
        "constexpr",
        "decltype",
        "delete",
        "explicit",
        "export",
        "false",
        "friend",
        "mutable",
        "namespace",
        "new",
        "noexcept",
        "not",
        "nullptr",
        "operator",
        "or",
        "private",
        "protected",
        "public",
        "requires",
        "static_assert",
        "std",
        "template",
        "this",
        "throw",
        "true",
        "try",
        "typeid",
        "typename",
        "using",
        "virtual",
        "wchar_t",
        "xor",
    ];
    KEYWORDS.contains(&name)
}

/// The candidate most similar to the given name, if one is similar enough.
pub fn nearest<'a>(
    written: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    if written.len() > MAX_COMPARED {
        return None;
    }
    // One error per three characters, three at most; names of one or two characters may differ only in case.
    let allowed = (written.chars().count() / 3).min(3);
    candidates
        .into_iter()
        .filter(|candidate| candidate.len().abs_diff(written.len()) <= allowed)
        .map(|candidate| (distance(written, candidate, allowed), candidate))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Longest name that is compared.
const MAX_COMPARED: usize = 64;

/// Edit distance: insertions, deletions, replacements, and swaps of adjacent characters. Ignores case.
/// Distances above `most` are not distinguished, so only the middle of the table is computed.
fn distance(a: &str, b: &str, most: usize) -> usize {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let same = |i: usize, j: usize| a[i - 1].eq_ignore_ascii_case(&b[j - 1]);
    let far = most + 1;
    let mut before = vec![far; b.len() + 1];
    let mut last: Vec<usize> = (0..=b.len()).map(|j| j.min(far)).collect();
    let mut row = before.clone();
    for i in 1..=a.len() {
        row.fill(far);
        row[0] = i.min(far);
        for j in i.saturating_sub(most).max(1)..=(i + most).min(b.len()) {
            let replaced = last[j - 1] + usize::from(!same(i, j));
            row[j] = replaced.min(last[j] + 1).min(row[j - 1] + 1).min(far);
            if i > 1 && j > 1 && same(i, j - 1) && same(i - 1, j) {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        std::mem::swap(&mut before, &mut last);
        std::mem::swap(&mut last, &mut row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_found_and_far_ones_are_not() {
        let names = ["count", "size", "n", "matrix"];
        assert_eq!(nearest("cuont", names), Some("count"));
        assert_eq!(nearest("Size", names), Some("size"));
        assert_eq!(nearest("N", names), Some("n"));
        assert_eq!(nearest("m", names), None);
        assert_eq!(nearest("vector", names), None);
        assert_eq!(nearest("matrxi", names), Some("matrix"));
        assert_eq!(nearest("martixs", names), Some("matrix"));
        assert_eq!(nearest("atrix", names), Some("matrix"));
        assert_eq!(nearest("szi", names), None);
        assert_eq!(nearest(&"x".repeat(1000), names), None);
    }
}
