//! Lexer: produces one token at a time, since only the parser knows where C code begins.

use crate::block;
use crate::diagnostic::{Report, Span};

/// A token with its location.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Token<'s> {
    pub kind: TokenKind<'s>,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum TokenKind<'s> {
    /// A name or a keyword.
    Word(&'s str),
    Whole(i64),
    Real(f64),
    /// A string with escapes resolved.
    Text(String),
    /// Punctuation.
    Sign(&'static str),
    /// Invalid input that has been reported.
    Broken,
    End,
}

impl TokenKind<'_> {
    /// The token's name in messages.
    pub fn describe(&self) -> String {
        match self {
            TokenKind::Word(word) => format!("`{word}`"),
            TokenKind::Whole(number) => format!("`{number}`"),
            TokenKind::Real(number) => format!("`{number:?}`"),
            TokenKind::Text(_) => "a string".to_owned(),
            TokenKind::Sign(sign) => format!("`{sign}`"),
            TokenKind::Broken => "this".to_owned(),
            TokenKind::End => "the end of the file".to_owned(),
        }
    }
}

/// Shows numbers in full, unless they are absurdly long.
fn shorten(word: &str) -> String {
    match word.char_indices().nth(64) {
        Some((end, _)) => format!("{}...", &word[..end]),
        None => word.to_owned(),
    }
}

/// Longest name, more than compilers promise to distinguish.
const MAX_NAME: usize = 255;

/// Longer signs come first.
const SIGNS: [&str; 23] = [
    "<=", ">=", "==", "!=", "{", "}", "(", ")", "[", "]", ",", ";", ":", "?", "+", "-", "*", "/",
    "%", "^", "<", ">", "=",
];

pub(crate) struct Lexer<'s> {
    source: &'s str,
    at: usize,
}

impl<'s> Lexer<'s> {
    pub fn new(source: &'s str) -> Self {
        // Some editors write a byte order mark.
        Lexer { source, at: if source.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 } }
    }

    fn rest(&self) -> &'s str {
        &self.source[self.at..]
    }

    /// The next token; `End` forever after the last one.
    pub fn next(&mut self, report: &mut Report) -> Token<'s> {
        self.skip_blanks(report);
        let start = self.at;
        let rest = self.rest();
        let kind = match rest.chars().next() {
            None => TokenKind::End,
            Some(c) if c == '_' || c.is_ascii_alphabetic() => {
                let word = &rest[..block::word_len(rest)];
                self.at += word.len();
                if word.len() <= MAX_NAME {
                    TokenKind::Word(word)
                } else {
                    let message = format!("a name of more than {MAX_NAME} characters");
                    report.error(Span::new(start, self.at), message);
                    TokenKind::Broken
                }
            }
            Some(c) if c.is_ascii_digit() => self.number(report),
            Some('"') => self.text(report),
            Some(_) => match SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
                Some(sign) => {
                    self.at += sign.len();
                    TokenKind::Sign(sign)
                }
                None => self.stray(report),
            },
        };
        Token { kind, span: Span::new(start, self.at) }
    }

    /// The text between the brace at `open` and the closing one, after which the lexer continues. If there is
    /// no closing brace, reports that and skips the rest of the file.
    pub fn block(&mut self, open: usize, report: &mut Report) -> Option<Span> {
        match block::end(self.source, open) {
            Some(close) => {
                self.at = close + 1;
                Some(Span::new(open + 1, close))
            }
            None => {
                self.at = self.source.len();
                report.error(Span::new(open, open + 1), "this `{` is never closed");
                None
            }
        }
    }

    /// Skips blanks, comments and preprocessor output.
    fn skip_blanks(&mut self, report: &mut Report) {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start();
            self.at += rest.len() - trimmed.len();
            if trimmed.starts_with("//") {
                self.at += line_len(trimmed);
            } else if let Some(comment) = trimmed.strip_prefix("/*") {
                match comment.find("*/") {
                    Some(len) => self.at += 2 + len + 2,
                    None => {
                        report
                            .error(Span::new(self.at, self.at + 2), "this comment is never closed");
                        self.at = self.source.len();
                    }
                }
            } else if trimmed.starts_with('#') && self.only_blanks_before() {
                self.directive(report);
            } else {
                return;
            }
        }
    }

    fn only_blanks_before(&self) -> bool {
        let before = self.source[..self.at].trim_end_matches([' ', '\t', '\u{feff}']);
        before.is_empty() || before.ends_with('\n')
    }

    /// Skips line markers and `#pragma`; other directives should not have got this far.
    fn directive(&mut self, report: &mut Report) {
        let rest = self.rest();
        let len = line_len(rest);
        let word = rest[1..len].trim_start();
        let known = word.is_empty()
            || word.starts_with(|c: char| c.is_ascii_digit())
            || word.starts_with("line")
            || word.starts_with("pragma");
        if !known {
            report.error_with(
                Span::new(self.at, self.at + rest[..len].trim_end().len()),
                "a line for the C preprocessor",
                "run the file through `cpp` first; inside `Globals { }` such lines may stay",
            );
        }
        self.at += len;
    }

    fn number(&mut self, report: &mut Report) -> TokenKind<'s> {
        let start = self.at;
        let text = &self.rest()[..block::number_len(self.rest())];
        self.at += text.len();
        let span = Span::new(start, self.at);
        let hexadecimal = text.strip_prefix("0x").or(text.strip_prefix("0X"));
        let (digits, radix) = hexadecimal.map_or((text, 10), |digits| (digits, 16));
        if !digits.is_empty() && digits.chars().all(|c| c.is_digit(radix)) {
            if radix == 10 && digits.len() > 1 && digits.starts_with('0') {
                report.error_with(
                    span,
                    "a number that starts with 0",
                    "octal numbers are not known here: write it as a decimal one, or as 0x...",
                );
                return TokenKind::Broken;
            }
            return match i64::from_str_radix(digits, radix) {
                Ok(number) => TokenKind::Whole(number),
                Err(_) => {
                    report.error(span, format!("this number is above {}", i64::MAX));
                    TokenKind::Broken
                }
            };
        }
        // Rust also reads `inf` and `nan`, but those do not start with a digit.
        match text.parse::<f64>() {
            Ok(number) if number.is_finite() => TokenKind::Real(number),
            _ => {
                report.error(span, format!("`{}` is not a number", shorten(text)));
                TokenKind::Broken
            }
        }
    }

    /// A string, which ends on the line where it starts.
    fn text(&mut self, report: &mut Report) -> TokenKind<'s> {
        let start = self.at;
        let rest = self.rest();
        let mut text = String::new();
        let mut broken = false;
        let mut chars = rest.char_indices().skip(1).peekable();
        while let Some((at, c)) = chars.next() {
            match c {
                '"' => {
                    self.at = start + at + 1;
                    return if broken { TokenKind::Broken } else { TokenKind::Text(text) };
                }
                '\n' => break,
                '\0' => {
                    broken = true;
                    report.error(Span::new(start + at, start + at + 1), "a NUL in a string");
                }
                '\\' => {
                    let escaped = chars.next().map(|(_, c)| c);
                    let mut hexadecimal = || {
                        let mut digit = || chars.next_if(|(_, c)| c.is_ascii_hexdigit());
                        let pair = [digit()?.1, digit()?.1];
                        let [high, low] = pair.map(|c| c.to_digit(16));
                        char::from_u32(high? * 16 + low?)
                    };
                    let meant = match escaped {
                        Some('n') => Some('\n'),
                        Some('t') => Some('\t'),
                        Some('r') => Some('\r'),
                        Some(c @ ('"' | '\\' | '\'')) => Some(c),
                        // ASCII only: the meaning of other bytes would depend on an encoding.
                        Some('x') => hexadecimal().filter(|c| c.is_ascii() && *c != '\0'),
                        Some('\n') | None => break,
                        Some(_) => None,
                    };
                    match meant {
                        Some(c) => text.push(c),
                        None => {
                            broken = true;
                            let len = 1 + escaped.map_or(0, char::len_utf8);
                            report.error_with(
                                Span::new(start + at, start + at + len),
                                "a string cannot have this escape",
                                r#"there are \n, \t, \r, \", \\ and \x01 to \x7f"#,
                            );
                        }
                    }
                }
                c => text.push(c),
            }
        }
        self.at = start + line_len(rest);
        report.error(Span::new(start, self.at), "this string does not end in its line");
        TokenKind::Broken
    }

    /// Reports a run of invalid characters once.
    fn stray(&mut self, report: &mut Report) -> TokenKind<'s> {
        let start = self.at;
        let rest = self.rest();
        let usual = |c: char| {
            c.is_ascii_alphanumeric() || c.is_whitespace() || "_\"{}()[],;:?+-*/%^<>=#".contains(c)
        };
        let first = rest.chars().next().map_or(0, char::len_utf8);
        let len = rest[first..].find(usual).map_or(rest.len(), |len| first + len);
        self.at += len;
        let what = rest[..len].escape_debug().take(16).collect::<String>();
        report.error(Span::new(start, self.at), format!("`{what}` means nothing here"));
        TokenKind::Broken
    }
}

/// Length of the rest of the line, without the line end.
fn line_len(text: &str) -> usize {
    text.find('\n').unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(source: &str) -> (Vec<TokenKind<'_>>, Vec<String>) {
        let mut report = Report::default();
        let mut lexer = Lexer::new(source);
        let mut tokens = Vec::new();
        loop {
            match lexer.next(&mut report).kind {
                TokenKind::End => break,
                kind => tokens.push(kind),
            }
        }
        (tokens, report.finish().into_iter().map(|found| found.message).collect())
    }

    fn clean(source: &str) -> Vec<TokenKind<'_>> {
        let (tokens, errors) = tokens(source);
        assert!(errors.is_empty(), "{source}: {errors:?}");
        tokens
    }

    use TokenKind::{Broken, Real, Sign, Text, Whole, Word};

    #[test]
    fn words_numbers_and_signs() {
        assert_eq!(
            clean("Define f_1(IN int n<=0x1F!=2.5e-3);"),
            [
                Word("Define"),
                Word("f_1"),
                Sign("("),
                Word("IN"),
                Word("int"),
                Word("n"),
                Sign("<="),
                Whole(31),
                Sign("!="),
                Real(0.0025),
                Sign(")"),
                Sign(";"),
            ]
        );
        assert_eq!(clean("9223372036854775807 0 1e30"), [Whole(i64::MAX), Whole(0), Real(1e30)]);
    }

    #[test]
    fn comments_and_line_markers_are_skipped() {
        let source = "\u{feff}# 1 \"f.idl\" 2\n/* { \" */ a // b\n#line 5\n  #pragma x\n b/**/c #";
        let (found, errors) = tokens(source);
        assert_eq!(found, [Word("a"), Word("b"), Word("c"), Broken]);
        assert_eq!(errors, ["`#` means nothing here"]);
    }

    #[test]
    fn strings_and_their_escapes() {
        assert_eq!(clean(r#""a\"b\\\n\x41é""#), [Text("a\"b\\\nAé".to_owned())]);
        assert_eq!(clean("\"\""), [Text(String::new())]);
    }

    #[test]
    fn what_is_broken_is_said_once_and_reading_continues() {
        for (source, message) in [
            ("a\n\"b\nc", "this string does not end in its line"),
            ("a\n\"b\\", "this string does not end in its line"),
            ("a @$! c", "`@$!` means nothing here"),
            ("a 99999999999999999999 c", "this number is above 9223372036854775807"),
            ("a 010 c", "a number that starts with 0"),
            ("a 12ab c", "`12ab` is not a number"),
            ("a 1e999 c", "`1e999` is not a number"),
            (r#"a "\q" c"#, "a string cannot have this escape"),
            (r#"a "\x00" c"#, "a string cannot have this escape"),
            (r#"a "\xff" c"#, "a string cannot have this escape"),
        ] {
            let (found, errors) = tokens(source);
            assert_eq!(errors, [message], "{source}");
            assert_eq!(found[..2], [Word("a"), Broken], "{source}");
        }
        assert_eq!(tokens("a /* b").1, ["this comment is never closed"]);
        assert_eq!(tokens("a\n#define N 3\nb").1, ["a line for the C preprocessor"]);
        assert_eq!(tokens("a\n#define N 3\nb").0, [Word("a"), Word("b")]);
    }
}
