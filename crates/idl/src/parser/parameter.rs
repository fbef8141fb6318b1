//! Parameter lists and declarations of parameters.

use super::{ITEMS, Parsed, Parser, SyntaxError};
use crate::diagnostic::Span;
use crate::lexer::TokenKind;
use crate::module::{Distribution, Mode};
use crate::names;
use crate::syntax::{Dimension, Parameter, Parameters, Shape, Text};
use crate::types::Type;

/// Most parameters of a list; no person writes more.
pub(super) const MAX_PARAMETERS: usize = 1000;
const MAX_DIMENSIONS: usize = 32;
/// Most stars and parentheses before a name.
const MAX_PREFIXES: usize = 64;

fn mode(word: &str) -> Option<Mode> {
    match word {
        "IN" | "mode_in" => Some(Mode::In),
        "OUT" | "mode_out" => Some(Mode::Out),
        "INOUT" | "mode_inout" => Some(Mode::InOut),
        "WORK" | "mode_work" => Some(Mode::Work),
        _ => None,
    }
}

fn distribution(word: &str) -> Option<Distribution> {
    match word {
        "allocate" => Some(Distribution::Allocate),
        "broadcast" => Some(Distribution::Broadcast),
        _ => None,
    }
}

/// The part of a declaration before the name.
#[derive(Default)]
struct Spec {
    mode: Option<Mode>,
    distribution: Option<(Distribution, Span)>,
    words: Vec<Text>,
}

impl Spec {
    fn is_empty(&self) -> bool {
        self.mode.is_none() && self.distribution.is_none() && self.words.is_empty()
    }
}

/// What stands for a type of Fortran.
fn of_fortran(word: &str) -> Option<&'static str> {
    Some(match word.to_ascii_lowercase().as_str() {
        "integer" => "write `int`, and `int64` for integer(8)",
        "real" => "write `float`, and `double` for real(8)",
        "complex" => "write `scomplex`, and `dcomplex` for complex(8)",
        "logical" => "write `int`: 1 is true, 0 is false",
        "character" => {
            "write `string` for a text that goes in, `char name[80]` for a text that comes back"
        }
        _ => return None,
    })
}

impl<'s> Parser<'s, '_> {
    /// The list in parentheses; `nested` for that of a callback.
    pub(super) fn parameters(&mut self, nested: bool) -> Parsed<Parameters> {
        self.expect("(", "and parameters")?;
        let mut parameters = Parameters { list: Vec::new(), broken: false };
        if self.accept(")") {
            return Ok(parameters);
        }
        loop {
            match self.parameter(nested) {
                Ok(parameter) if parameters.list.len() < MAX_PARAMETERS => {
                    parameters.list.push(parameter);
                }
                Ok(parameter) => {
                    self.too_many("parameters", parameter.name.span);
                    return Err(SyntaxError);
                }
                Err(SyntaxError) if self.report.is_full() => return Err(SyntaxError),
                Err(SyntaxError) => {
                    parameters.broken = true;
                    self.skip_parameter();
                }
            }
            if self.accept(")") {
                return Ok(parameters);
            }
            if !self.accept(",") {
                // Skipped parameters have been reported.
                return Err(if parameters.broken {
                    SyntaxError
                } else {
                    self.unexpected("`,` or `)` after a parameter")
                });
            }
        }
    }

    /// Skips to the next comma or parenthesis of this list, but not past the end of an item.
    fn skip_parameter(&mut self) {
        let mut depth = 0usize;
        loop {
            match self.token.kind {
                TokenKind::End | TokenKind::Sign(";" | "{" | "}") => return,
                TokenKind::Word(word) if ITEMS.contains(&word) => return,
                TokenKind::Sign("," | ")") if depth == 0 => return,
                TokenKind::Sign("(" | "[") => depth += 1,
                TokenKind::Sign(")" | "]") => depth = depth.saturating_sub(1),
                _ => {}
            }
            self.advance();
        }
    }

    fn parameter(&mut self, nested: bool) -> Parsed<Parameter> {
        let start = self.token.span;
        let spec = self.spec()?;
        let mut open = 0usize;
        let mut pointers = 0usize;
        while open + pointers < MAX_PREFIXES {
            if self.accept("*") {
                pointers += 1;
            } else if self.accept("(") {
                open += 1;
            } else {
                break;
            }
        }
        let name = self.declared(&spec)?;
        if self.at("(") && open == 0 && pointers == 0 {
            return self.callback(start, &spec, name, nested);
        }
        if spec.words.is_empty() {
            let next = if name.text == "std" && self.at(":") { Some(":") } else { self.word() };
            if let Some(next) = next {
                return Err(self.unknown_type(&name, next));
            }
        }

        let mut dimensions = Vec::new();
        loop {
            if self.at("[") {
                if dimensions.len() == MAX_DIMENSIONS {
                    let message = format!("more than {MAX_DIMENSIONS} dimensions");
                    self.report.error(self.token.span, message);
                    return Err(SyntaxError);
                }
                dimensions.push(self.dimension()?);
            } else if open > 0 {
                self.expect(")", "in a declaration")?;
                open -= 1;
            } else {
                break;
            }
        }
        let Spec { mode, distribution, words } = spec;
        Ok(Parameter {
            name,
            shape: Shape::Plain { mode, distribution, words, pointers, dimensions },
        })
    }

    /// Modes and type words in any order.
    fn spec(&mut self) -> Parsed<Spec> {
        let mut spec = Spec::default();
        while let Some(word) = self.word() {
            let span = self.token.span;
            if let Some(mode) = mode(word) {
                if spec.mode.replace(mode).is_some() {
                    self.report.error(span, "a second mode for the same parameter");
                    return Err(SyntaxError);
                }
            } else if let Some(distribution) = distribution(word) {
                if spec.distribution.replace((distribution, span)).is_some() {
                    self.report.error(span, "`allocate` or `broadcast` a second time");
                    return Err(SyntaxError);
                }
            } else if Type::is_word(word) {
                if spec.words.len() == 4 {
                    self.report.error(span, "too many words for one type");
                    return Err(SyntaxError);
                }
                spec.words.push(Text { text: word.to_owned(), span });
            } else {
                break;
            }
            self.advance();
        }
        Ok(spec)
    }

    /// The declared name.
    fn declared(&mut self, spec: &Spec) -> Parsed<Text> {
        if self.word().is_some() {
            return self.name("the name of the parameter");
        }
        if let [only] = &spec.words[..]
            && only.text == "void"
            && spec.mode.is_none()
            && self.at(")")
        {
            self.report.error_with(
                only.span,
                "`void` is not supported",
                "a function without parameters is written with `()`",
            );
            return Err(SyntaxError);
        }
        let hint = match spec.words.last() {
            Some(last) if matches!(self.token.kind, TokenKind::Sign("," | ")" | "[")) => {
                Some(format!("`{}` is the name of a type", last.text))
            }
            _ => None,
        };
        Err(self.unexpected_with("the name of a parameter", hint))
    }

    /// Reports two names in a row: the first was meant as a type.
    fn unknown_type(&mut self, name: &Text, next: &str) -> SyntaxError {
        let (message, hint) = match name.text.as_str() {
            "const" => (
                "`const` is not known here".to_owned(),
                Some("leave it out: `IN` says that nothing is changed".to_owned()),
            ),
            "std" if next == ":" => (
                "`std` is a name of C++, which an interface does not have".to_owned(),
                Some(
                    "for a vector of numbers write its length and an array, as in `IN int n, IN double x[n]`; for a \
                     text write `string`: `Calls \"C++\"` makes vectors and strings of them"
                        .to_owned(),
                ),
            ),
            text => {
                let types = Type::ALL.iter().map(|kind| kind.idl_name());
                let modes = ["IN", "OUT", "INOUT", "WORK", "mode_in", "mode_out", "mode_inout"];
                // Modes are upper-case.
                let modes_first = text.starts_with(|c: char| c.is_ascii_uppercase());
                let (first, second) =
                    if modes_first { (&modes[..], &[][..]) } else { (&[][..], &modes[..]) };
                let candidates = first.iter().copied().chain(types).chain(second.iter().copied());
                let meant = names::nearest(text.trim_end_matches("_t"), candidates)
                    .or(Type::ALL
                        .iter()
                        .find(|kind| kind.c_name() == text)
                        .map(|kind| kind.idl_name()))
                    .filter(|meant| *meant != next);
                let hint = match (text, meant) {
                    ("size_t", _) => Some("write `uint64` or `unsigned long`".to_owned()),
                    ("bool", _) => Some("write `int`".to_owned()),
                    (_, Some(meant)) => Some(format!("did you mean `{meant}`?")),
                    _ => None,
                };
                let hint = of_fortran(text).map(str::to_owned).or(hint);
                (format!("`{text}` is not a type"), hint)
            }
        };
        self.report.add(crate::diagnostic::Severity::Error, name.span, message, hint);
        SyntaxError
    }

    fn callback(
        &mut self,
        start: Span,
        spec: &Spec,
        name: Text,
        nested: bool,
    ) -> Parsed<Parameter> {
        if nested {
            self.report.error(name.span, "a callback cannot have a callback as its parameter");
            return Err(SyntaxError);
        }
        if !spec.is_empty() {
            self.report.error_with(
                Span::new(start.start, name.span.end),
                "a callback has no mode and no type",
                format!(
                    "write `{}(...)` alone: it takes and gives through its parameters",
                    name.text
                ),
            );
        }
        let parameters = self.parameters(true)?;
        Ok(Parameter { name, shape: Shape::Callback(parameters) })
    }

    fn dimension(&mut self) -> Parsed<Dimension> {
        let start = self.advance().span;
        let size = match self.token.kind {
            TokenKind::Sign("]" | ":") => None,
            _ => Some(self.expression()?),
        };
        let mut range = None;
        if self.at(":") {
            self.advance();
            let first = self.token.span;
            let mut parts = vec![self.expression()?];
            while self.accept(",") {
                if parts.len() == 3 {
                    self.report.error_with(
                        self.token.span,
                        "a range of more than three values",
                        "write `[size : start, end, step]`",
                    );
                    return Err(SyntaxError);
                }
                parts.push(self.expression()?);
            }
            range = Some((parts, Span::new(first.start, self.last_end)));
        }
        self.expect("]", "after the size")?;
        Ok(Dimension { size, range, span: Span::new(start.start, self.last_end) })
    }
}
