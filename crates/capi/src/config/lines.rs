//! Lines of a configuration file: section starts, section ends, and attributes with values.
//!
//! ```text
//! <SERVER>               # a comment
//!     hostname   node1
//!     environment "A=two words"
//! </SERVER>
//! ```
//!
//! A `#` begins a comment at the start of a line and after a blank, so `path /a#b` is a path. In double
//! quotes there are no comments; `\"` and `\\` stand for `"` and `\`.

/// A parsed line. Empty lines produce none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// `<NAME>`
    Begin(String),
    /// `</NAME>`
    End(String),
    /// `name value`
    Attribute {
        /// The name.
        name: String,
        /// The words of the value; may be empty.
        words: Vec<String>,
    },
}

/// Error in a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The error.
    pub message: String,
    /// The remedy.
    pub hint: String,
}

impl Fault {
    pub(crate) fn new(message: impl Into<String>, hint: impl Into<String>) -> Fault {
        Fault { message: message.into(), hint: hint.into() }
    }
}

/// Reads one line.
pub fn read(text: &str) -> Result<Option<Line>, Fault> {
    let mut words = split(text)?;
    let Some(first) = words.first() else { return Ok(None) };
    if let Some(tag) = first.strip_prefix('<') {
        if words.len() > 1 || !first.ends_with('>') {
            return Err(Fault::new(
                format!("`{}` is not a section's beginning or end", text.trim()),
                "write `<NAME>` or `</NAME>` alone on a line",
            ));
        }
        let tag = &tag[..tag.len() - 1];
        let (name, ends) = match tag.strip_prefix('/') {
            Some(name) => (name, true),
            None => (tag, false),
        };
        return Ok(Some(if ends { Line::End(name.into()) } else { Line::Begin(name.into()) }));
    }
    let name = words.remove(0);
    Ok(Some(Line::Attribute { name, words }))
}

/// Splits a line into words; handles quotes and comments.
fn split(text: &str) -> Result<Vec<String>, Fault> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '#' if word.is_none() => break,
            '"' => quoted(&mut chars, word.get_or_insert_default())?,
            c if c.is_whitespace() => words.extend(word.take()),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    Ok(words)
}

/// Reads up to the closing quote.
fn quoted(chars: &mut std::str::Chars<'_>, word: &mut String) -> Result<(), Fault> {
    while let Some(c) = chars.next() {
        match c {
            '"' => return Ok(()),
            '\\' => match chars.next() {
                Some(escaped @ ('"' | '\\')) => word.push(escaped),
                Some(other) => word.extend(['\\', other]),
                None => break,
            },
            c => word.push(c),
        }
    }
    Err(Fault::new("the quote is not closed", "end the value with `\"` on the same line"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attribute(name: &str, words: &[&str]) -> Option<Line> {
        Some(Line::Attribute {
            name: name.into(),
            words: words.iter().map(ToString::to_string).collect(),
        })
    }

    #[test]
    fn lines_of_all_kinds() {
        assert_eq!(read("").unwrap(), None);
        assert_eq!(read("  # nothing").unwrap(), None);
        assert_eq!(read(" <CLIENT>").unwrap(), Some(Line::Begin("CLIENT".into())));
        assert_eq!(read("</CLIENT> # end").unwrap(), Some(Line::End("CLIENT".into())));
        assert_eq!(read("heartbeat\t10 s\r").unwrap(), attribute("heartbeat", &["10", "s"]));
        assert_eq!(read("debug").unwrap(), attribute("debug", &[]));
    }

    #[test]
    fn comments_begin_at_words_only() {
        assert_eq!(read("path /a#b #c").unwrap(), attribute("path", &["/a#b"]));
    }

    #[test]
    fn quotes_keep_blanks_and_hashes() {
        assert_eq!(read(r#"x "a # b" c"#).unwrap(), attribute("x", &["a # b", "c"]));
        assert_eq!(read(r#"x "a\"\\\n""#).unwrap(), attribute("x", &["a\"\\\\n"]));
        assert_eq!(read(r#"x """#).unwrap(), attribute("x", &[""]));
    }

    #[test]
    fn what_is_no_line() {
        for text in ["<SERVER", "< SERVER >", "<A> <B>", "<SERVER> hostname x"] {
            assert!(read(text).unwrap_err().message.contains("not a section's"), "{text}");
        }
        for text in ["x \"a", "x \"a\\"] {
            assert_eq!(read(text).unwrap_err().message, "the quote is not closed");
        }
    }
}
