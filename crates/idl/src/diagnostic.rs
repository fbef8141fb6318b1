//! Diagnostics: errors and warnings, with positions and hints.

use std::fmt::Write;
use std::sync::Arc;

/// A range of bytes of the source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Span {
    /// The first byte.
    pub start: usize,
    /// The byte after the last one.
    pub end: usize,
}

impl Span {
    pub(crate) fn new(start: usize, end: usize) -> Self {
        Span { start, end }
    }

    /// Extends from the start of this span to the end of the other.
    pub(crate) fn to(self, other: Span) -> Span {
        Span { start: self.start, end: other.end.max(self.start) }
    }
}

/// Severity of a diagnostic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The file cannot be used.
    Error,
    /// The file can be used, but this is probably a mistake.
    Warning,
}

/// An error or warning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Its severity.
    pub severity: Severity,
    /// The problem.
    pub message: String,
    /// The remedy.
    pub hint: Option<String>,
    /// Its location.
    pub span: Span,
}

impl Diagnostic {
    /// Formats the diagnostic for display: position and message, the line, carets, and the hint.
    ///
    /// `file` names the file with the text `source`. After the C preprocessor's line markers, the position
    /// refers to the file that they name.
    #[must_use]
    pub fn render(&self, file: &str, source: &str) -> String {
        let position = Position::of(source, self.span.start);
        let line = line_around(source, self.span.start);
        let start = floor(source, self.span.start);
        let column = source[line.start..start].chars().count();
        let end = floor(source, self.span.end.clamp(start, line.end.max(start)));
        let carets = source[start..end].chars().count().max(1);

        let severity = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        let file = position.file.as_deref().unwrap_or(file);
        let mut text =
            format!("{file}:{}:{}: {severity}: {}\n", position.line, column + 1, self.message);
        // Show only a section of a very long line.
        let skipped = column.saturating_sub(MAX_SHOWN / 2);
        let shown: String = source[line.start..line.end]
            .chars()
            .skip(skipped)
            .take(MAX_SHOWN)
            .map(|c| if c.is_control() { ' ' } else { c })
            .collect();
        let indent = column - skipped;
        let carets = "^".repeat(carets.min(MAX_SHOWN.saturating_sub(indent)).max(1));
        let _ = write!(text, "    {}\n    {:indent$}{carets}\n", shown.trim_end(), "");
        if let Some(hint) = &self.hint {
            let _ = writeln!(text, "hint: {hint}");
        }
        text
    }
}

/// Most characters of a line that are shown.
const MAX_SHOWN: usize = 160;

/// A line, numbered as in editors.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Position {
    /// From 1.
    pub line: usize,
    /// The file named by a line marker, if it is not the source.
    pub file: Option<Arc<str>>,
}

impl Position {
    /// The position of a byte.
    pub fn of(source: &str, at: usize) -> Position {
        Positions::new(source).position(at)
    }
}

/// Positions of bytes, queried in ascending order, so that the source is read once.
pub(crate) struct Positions<'s> {
    source: &'s str,
    /// Start of the current line, and of the next one, if there is one.
    start: usize,
    next: Option<usize>,
    position: Position,
}

impl<'s> Positions<'s> {
    pub fn new(source: &'s str) -> Self {
        let position = Position { line: 1, file: None };
        Positions { source, start: 0, next: line_behind(source, 0), position }
    }

    /// The position of a byte, which must not precede that of the last query.
    pub fn position(&mut self, at: usize) -> Position {
        while let Some(next) = self.next.filter(|next| *next <= at) {
            match line_marker(&self.source[self.start..next]) {
                Some((line, file)) => {
                    self.position.line = line;
                    if let Some(file) = file {
                        self.position.file = Some(file.into());
                    }
                }
                None => self.position.line += 1,
            }
            self.start = next;
            self.next = line_behind(self.source, next);
        }
        self.position.clone()
    }
}

fn line_behind(source: &str, start: usize) -> Option<usize> {
    source[start..].find('\n').map(|len| start + len + 1)
}

/// The number of the next line, and its file, if this is a line marker such as `# 12 "file" 3`.
fn line_marker(line: &str) -> Option<(usize, Option<&str>)> {
    let rest = line.trim().strip_prefix('#')?.trim_start();
    let rest = rest.strip_prefix("line").unwrap_or(rest).trim_start();
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let number = rest[..digits].parse().ok()?;
    let file =
        rest[digits..].trim_start().strip_prefix('"').and_then(|rest| rest.split('"').next());
    // Ignore names that no system accepts.
    Some((number, file.filter(|file| file.len() <= 1000)))
}

/// The line around a byte, without its line end.
fn line_around(source: &str, at: usize) -> Span {
    let at = floor(source, at);
    let start = source[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let end = source[at..].find('\n').map_or(source.len(), |newline| at + newline);
    Span { start, end }
}

/// The last character boundary at or before a byte.
fn floor(source: &str, at: usize) -> usize {
    let mut at = at.min(source.len());
    while !source.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// Diagnostics so far, limited in number.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub diagnostics: Vec<Diagnostic>,
    errors: usize,
}

/// Most diagnostics; more would not help.
const MAX_DIAGNOSTICS: usize = 100;

impl Report {
    pub fn error(&mut self, span: Span, message: impl Into<String>) {
        self.add(Severity::Error, span, message.into(), None);
    }

    pub fn error_with(&mut self, span: Span, message: impl Into<String>, hint: impl Into<String>) {
        self.add(Severity::Error, span, message.into(), Some(hint.into()));
    }

    pub fn warning_with(
        &mut self,
        span: Span,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        self.add(Severity::Warning, span, message.into(), Some(hint.into()));
    }

    pub fn warning(&mut self, span: Span, message: impl Into<String>) {
        self.add(Severity::Warning, span, message.into(), None);
    }

    pub fn add(&mut self, severity: Severity, span: Span, message: String, hint: Option<String>) {
        self.errors += usize::from(severity == Severity::Error);
        if !self.is_full() {
            self.diagnostics.push(Diagnostic { severity, message, hint, span });
        }
    }

    pub fn has_errors(&self) -> bool {
        self.errors > 0
    }

    pub fn is_full(&self) -> bool {
        self.diagnostics.len() >= MAX_DIAGNOSTICS
    }

    /// All diagnostics in the order of the source. Warnings never displace errors.
    pub fn finish(mut self) -> Vec<Diagnostic> {
        let shown = self.diagnostics.iter().any(|found| found.severity == Severity::Error);
        if self.errors > 0 && !shown {
            self.diagnostics.push(Diagnostic {
                severity: Severity::Error,
                message: "there are errors behind all these warnings".to_owned(),
                hint: Some("mend the causes of the warnings first".to_owned()),
                span: Span::default(),
            });
        }
        self.diagnostics.sort_by_key(|found| found.span.start);
        self.diagnostics
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(start: usize, end: usize) -> Diagnostic {
        Diagnostic {
            severity: Severity::Error,
            message: "wrong".to_owned(),
            hint: None,
            span: Span { start, end },
        }
    }

    #[test]
    fn place_line_carets_and_hint() {
        let source = "Module m;\n\tfoo bar;\r\n";
        let mut found = error(11, 14);
        found.hint = Some("write `baz`".to_owned());
        assert_eq!(
            found.render("m.idl", source),
            "m.idl:2:2: error: wrong\n     foo bar;\n     ^^^\nhint: write `baz`\n"
        );
    }

    #[test]
    fn any_span_can_be_rendered() {
        let source = "# 7 \"é.h\"\nèé\n\nx";
        for start in 0..source.len() + 3 {
            for end in 0..source.len() + 3 {
                assert!(error(start, end).render("f", source).contains("error: wrong"));
            }
        }
        assert!(error(0, 0).render("f", "").starts_with("f:1:1: error"));
    }

    #[test]
    fn line_markers_tell_file_and_line() {
        let source = "# 1 \"a.idl\"\nx\n#line 40 \"b.h\" 3\nfirst\nsecond\n";
        let at = source.find("second").expect("it is there");
        assert!(error(at, at + 6).render("m.idl", source).starts_with("b.h:41:1: error"));
        assert!(error(12, 13).render("m.idl", source).starts_with("a.idl:1:1: error"));
    }

    #[test]
    fn of_a_long_line_only_a_part_is_shown() {
        let source = "x".repeat(100_000);
        let text = error(50_000, 100_000).render("f", &source);
        assert!(text.len() < 500, "{text}");
        assert!(text.starts_with("f:1:50001: error"));
    }

    #[test]
    fn the_number_of_findings_is_bounded_and_errors_are_not_lost() {
        let mut report = Report::default();
        (0..1000).for_each(|at| report.warning(Span::new(at, at), "odd"));
        report.error(Span::new(5, 6), "wrong");
        let found = report.finish();
        assert_eq!(found.len(), MAX_DIAGNOSTICS + 1);
        assert!(found.iter().any(|found| found.severity == Severity::Error));
    }
}
