//! C code in braces: finds its end and the names that it mentions.

/// Length of the identifier at the start of a text.
pub(crate) fn word_len(text: &str) -> usize {
    text.find(|c: char| c != '_' && !c.is_ascii_alphanumeric()).unwrap_or(text.len())
}

/// Length of the number at the start of a text, as the C preprocessor defines it: digits, letters, dots,
/// signs after an exponent, and C++'s `1'000`.
pub(crate) fn number_len(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut len = 0;
    while let Some(&byte) = bytes.get(len) {
        let exponent = len > 0
            && matches!(bytes[len - 1] | 0x20, b'e' | b'p')
            // In `0xe+1` the plus is an operator.
            && (bytes[len - 1] | 0x20 == b'p' || !(text.starts_with("0x") || text.starts_with("0X")));
        let goes_on = match byte {
            b'+' | b'-' => exponent,
            b'\'' => bytes.get(len + 1).is_some_and(u8::is_ascii_alphanumeric),
            byte => byte == b'.' || byte == b'_' || byte.is_ascii_alphanumeric(),
        };
        if !goes_on {
            break;
        }
        len += 1;
    }
    len
}

/// A piece of C code that is relevant to finding its end.
enum CodeToken<'a> {
    Open,
    Close,
    Word(&'a str),
    Other,
}

/// Position of the brace that closes the one at `open`.
pub(crate) fn end(source: &str, open: usize) -> Option<usize> {
    let mut depth = 0usize;
    let mut at = open;
    while let Some((piece, len)) = next(&source[at..]) {
        match piece {
            CodeToken::Open => depth += 1,
            CodeToken::Close if depth <= 1 => return Some(at),
            CodeToken::Close => depth -= 1,
            CodeToken::Word(_) | CodeToken::Other => {}
        }
        at += len;
    }
    None
}

/// Names in C text, except those in comments and strings.
pub(crate) fn words(text: &str) -> impl Iterator<Item = &str> {
    let mut at = 0;
    std::iter::from_fn(move || {
        while let Some((piece, len)) = next(&text[at..]) {
            at += len;
            if let CodeToken::Word(word) = piece {
                return Some(word);
            }
        }
        None
    })
}

/// The piece at the start of a text and its length; `None` at the end.
fn next(text: &str) -> Option<(CodeToken<'_>, usize)> {
    let first = text.chars().next()?;
    Some(match first {
        '{' => (CodeToken::Open, 1),
        '}' => (CodeToken::Close, 1),
        '/' if text.starts_with("//") => (CodeToken::Other, line_comment_len(text)),
        '/' if text.starts_with("/*") => {
            (CodeToken::Other, text[2..].find("*/").map_or(text.len(), |len| len + 4))
        }
        '"' | '\'' => (CodeToken::Other, quoted_len(text, first)),
        '0'..='9' => (CodeToken::Other, number_len(text)),
        '_' | 'a'..='z' | 'A'..='Z' => {
            let word = &text[..word_len(text)];
            let raw = matches!(word, "R" | "LR" | "uR" | "UR" | "u8R");
            match raw.then(|| raw_len(&text[word.len()..])).flatten() {
                Some(len) => (CodeToken::Other, word.len() + len),
                None => (CodeToken::Word(word), word.len()),
            }
        }
        other => (CodeToken::Other, other.len_utf8()),
    })
}

/// A backslash at the end of a line continues it on the next one.
fn line_comment_len(text: &str) -> usize {
    let mut len = 0;
    for line in text.split_inclusive('\n') {
        len += line.len();
        if !line.trim_end_matches(['\n', '\r']).ends_with('\\') {
            break;
        }
    }
    len
}

/// Length of a string or character literal with its quotes. A quote that is not closed on its line, such as
/// the apostrophe in `#error don't`, extends to the end of the line.
fn quoted_len(text: &str, quote: char) -> usize {
    let mut chars = text.char_indices().skip(1);
    while let Some((at, c)) = chars.next() {
        if c == quote {
            return at + 1;
        }
        match c {
            '\n' => return at,
            '\\' => {
                chars.next();
            }
            _ => {}
        }
    }
    text.len()
}

/// Length of a C++ raw string `"mark( anything )mark"`, if the text starts with one; the whole text if it is
/// not closed.
fn raw_len(text: &str) -> Option<usize> {
    // A delimiter has at most 16 characters.
    let open = text.bytes().take(18).position(|byte| byte == b'(')?;
    let mark = text[..open].strip_prefix('"')?;
    if mark.contains(|c: char| c.is_whitespace() || "\\)\"".contains(c)) {
        return None;
    }
    let close = format!("){mark}\"");
    Some(text.find(&close).map_or(text.len(), |at| at + close.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn braces_in_strings_characters_and_comments_do_not_count() {
        for inner in [
            "",
            " if (a) { b(); } else { c(); } ",
            r#" puts("}"); "#,
            r#" puts("\"}"); "#,
            " c = '}'; d = '\\'}'; e = '\"'; ",
            " // }\n ",
            " // continues \\\n }\n ",
            " /* } */ ",
            "\n#error don't }\n",
            " long n = 1'000'000; char c = '}'; ",
            " auto s = R\"x( } )\" )x\"; ",
            " é = \"é}\"; ",
            " x = 0xe+'}'; ",
        ] {
            let source = format!("{{{inner}}} {{");
            assert_eq!(end(&source, 0), Some(inner.len() + 1), "{inner}");
        }
        for open in ["{", "{{}", "{ \"}", "{ /* }", "{ // }", "{ R\"( } "] {
            assert_eq!(end(open, 0), None, "{open}");
        }
    }

    #[test]
    fn an_apostrophe_does_not_swallow_the_next_line() {
        assert_eq!(end("{#error don't\n}", 0), Some(14));
    }

    #[test]
    fn names_in_code_count_and_those_in_comments_do_not() {
        let text = "/* a */ extern void b(int); // c\n char *d = \"e\"; 12f";
        assert_eq!(words(text).collect::<Vec<_>>(), ["extern", "void", "b", "int", "char", "d"]);
    }

    #[test]
    fn numbers_as_the_preprocessor_sees_them() {
        for (text, len) in
            [("12 ", 2), ("1e-3+x", 4), ("0xe+1", 3), ("1'000'", 5), ("0x1p-3", 6), ("5", 1)]
        {
            assert_eq!(number_len(text), len, "{text}");
        }
    }
}
