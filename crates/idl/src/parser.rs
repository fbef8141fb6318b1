//! Parser: turns tokens into syntax. After an error it continues with the next recognizable item.
//!
//! Work is linear in the source, and recursion is limited.

mod expression;
mod parameter;

use crate::diagnostic::{Report, Span};
use crate::lexer::{Lexer, Token, TokenKind};
use crate::names;
use crate::syntax::{Body, CallArgument, Class, File, Function, Options, Setting, Text};

/// The parser must recover from an error, which has been reported.
struct SyntaxError;

type Parsed<T> = Result<T, SyntaxError>;

/// Deepest nesting of structures in the arguments of a call.
const MAX_STRUCTURES: usize = 8;

/// Words that begin an item at the top level.
const ITEMS: [&str; 11] = [
    "Module",
    "Globals",
    "CompileOptions",
    "Library",
    "Compiler",
    "Linker",
    "FortranFormat",
    "FortranStringConvention",
    "Dialect",
    "Define",
    "DefClass",
];

/// Words that begin an item in a class.
const CLASS_ITEMS: [&str; 2] = ["DefState", "DefMethod"];

/// Words that begin an option or a body.
const OPTIONS: [&str; 7] =
    ["Required", "Backend", "Shrink", "Language", "CalcOrder", "Idempotent", "Calls"];

pub(crate) fn parse(source: &str, report: &mut Report) -> File {
    let mut lexer = Lexer::new(source);
    let token = lexer.next(report);
    let mut parser = Parser { source, lexer, token, last_end: 0, report, operators: 0 };
    let mut file = File::default();
    while parser.token.kind != TokenKind::End && !parser.report.is_full() {
        if parser.at(";") {
            // Also accepted after a body, where C allows none.
            parser.advance();
        } else {
            let start = parser.token.span.start;
            if parser.item(&mut file).is_err() {
                parser.recover(start, &ITEMS, false);
            }
        }
    }
    file
}

struct Parser<'s, 'r> {
    source: &'s str,
    lexer: Lexer<'s>,
    /// The next token.
    token: Token<'s>,
    /// End of the previous token.
    last_end: usize,
    report: &'r mut Report,
    /// Number of operators in the current expression.
    operators: usize,
}

impl<'s> Parser<'s, '_> {
    fn advance(&mut self) -> Token<'s> {
        let next = self.lexer.next(self.report);
        let token = std::mem::replace(&mut self.token, next);
        self.last_end = token.span.end;
        token
    }

    fn at(&self, sign: &str) -> bool {
        matches!(self.token.kind, TokenKind::Sign(found) if found == sign)
    }

    fn word(&self) -> Option<&'s str> {
        match self.token.kind {
            TokenKind::Word(word) => Some(word),
            _ => None,
        }
    }

    /// Consumes the sign if it is next.
    fn accept(&mut self, sign: &str) -> bool {
        let found = self.at(sign);
        if found {
            self.advance();
        }
        found
    }

    fn expect(&mut self, sign: &str, where_: &str) -> Parsed<()> {
        if self.accept(sign) { Ok(()) } else { Err(self.unexpected(&format!("`{sign}` {where_}"))) }
    }

    /// Expects a semicolon. Reports a missing one at the end of the previous token rather than at the next.
    fn semicolon(&mut self, after: &str) -> Parsed<()> {
        if self.at(";") || self.token.kind == TokenKind::Broken {
            return self.expect(";", after);
        }
        let found = self.token.kind.describe();
        let span = Span::new(self.last_end, self.last_end);
        self.report.error(span, format!("expected `;` {after}, found {found}"));
        Err(SyntaxError)
    }

    /// Reports an unexpected token.
    fn unexpected(&mut self, wanted: &str) -> SyntaxError {
        self.unexpected_with(wanted, None)
    }

    fn unexpected_with(&mut self, wanted: &str, hint: Option<String>) -> SyntaxError {
        if self.token.kind != TokenKind::Broken {
            let message = format!("expected {wanted}, found {}", self.token.kind.describe());
            let severity = crate::diagnostic::Severity::Error;
            self.report.add(severity, self.token.span, message, hint);
        }
        SyntaxError
    }

    fn name(&mut self, what: &str) -> Parsed<Text> {
        match self.word() {
            Some(word) => {
                let span = self.advance().span;
                Ok(Text { text: word.to_owned(), span })
            }
            None => Err(self.unexpected(what)),
        }
    }

    fn text(&mut self, after: &str) -> Parsed<Text> {
        match &self.token.kind {
            TokenKind::Text(text) => {
                let text = text.clone();
                let span = self.advance().span;
                Ok(Text { text, span })
            }
            TokenKind::Word(word) => {
                let hint = format!("write \"{word}\"");
                Err(self.unexpected_with(&format!("a string after `{after}`"), Some(hint)))
            }
            _ => Err(self.unexpected(&format!("a string after `{after}`"))),
        }
    }

    /// C code in braces; the opening brace is the next token.
    fn code(&mut self, after: &str) -> Parsed<Text> {
        if !self.at("{") {
            return Err(self.unexpected(&format!("`{{` and C code after `{after}`")));
        }
        let span = self.lexer.block(self.token.span.start, self.report);
        self.advance();
        let span = span.ok_or(SyntaxError)?;
        Ok(Text { text: self.source[span.start..span.end].to_owned(), span })
    }

    /// Skips to where the next item may begin: after a `;` or a block, or at a keyword; in a class (`inside`)
    /// also at its closing `}`. Skips at least one token from `start`.
    fn recover(&mut self, start: usize, keywords: &[&str], inside: bool) {
        loop {
            let here = self.token.span.start;
            match self.token.kind {
                TokenKind::End => return,
                TokenKind::Word(word) if here > start && keywords.contains(&word) => return,
                // If a class was never closed, the next function is not one of its methods.
                TokenKind::Word("Define" | "DefClass") if here > start => return,
                TokenKind::Sign("}") if inside => return,
                TokenKind::Sign(";" | "}") => {
                    self.advance();
                    return;
                }
                TokenKind::Sign("{") => {
                    let _ = self.lexer.block(here, self.report);
                    self.advance();
                    return;
                }
                _ => {
                    self.advance();
                }
            }
        }
    }

    fn item(&mut self, file: &mut File) -> Parsed<()> {
        let word = self.word().unwrap_or_default();
        match word {
            "Module" => {
                self.advance();
                file.modules.push(self.name("the name of the module")?);
                self.semicolon("after the name of the module")
            }
            "Globals" => {
                self.advance();
                file.globals.push(self.code("Globals")?);
                Ok(())
            }
            "Define" => {
                self.advance();
                let function = self.function("the name of the function", false)?;
                file.functions.push(function);
                Ok(())
            }
            "DefClass" => {
                self.advance();
                self.class(file)
            }
            _ => match Setting::ALL.into_iter().find(|setting| setting.keyword() == word) {
                Some(setting) => self.setting(setting, file),
                None => {
                    let hint = self.suggest(&ITEMS);
                    Err(self
                        .unexpected_with("`Define`, `DefClass`, `Module` or another item", hint))
                }
            },
        }
    }

    /// The keyword that was probably meant by the next word.
    fn suggest(&self, keywords: &[&'static str]) -> Option<String> {
        let near = names::nearest(self.word()?, keywords.iter().copied())?;
        Some(format!("did you mean `{near}`?"))
    }

    fn setting(&mut self, setting: Setting, file: &mut File) -> Parsed<()> {
        self.advance();
        let value = if setting == Setting::FortranStringConvention {
            self.name("a word after `FortranStringConvention`")?
        } else {
            self.text(setting.keyword())?
        };
        file.settings.push((setting, value));
        self.semicolon(&format!("after `{}`", setting.keyword()))
    }

    /// A function or a method, starting at its name.
    fn function(&mut self, what: &str, method: bool) -> Parsed<Function> {
        let name = self.name(what)?;
        let parameters = self.parameters(false)?;
        let options = self.options(if method { &OPTIONS[2..6] } else { &OPTIONS[..6] })?;
        let body = self.body(&name)?;
        Ok(Function { name, parameters, options, body })
    }

    /// The description and those options that are `known` here.
    fn options(&mut self, known: &[&'static str]) -> Parsed<Options> {
        let mut options = Options::default();
        if let TokenKind::Text(_) = self.token.kind {
            options.description = Some(self.text("the parameters")?);
        }
        while let Some(word) = self.word() {
            if !known.contains(&word) {
                if OPTIONS[..6].contains(&word) {
                    let message = format!("a method cannot have `{word}`");
                    let hint = "write it behind the name of the class";
                    self.report.error_with(self.token.span, message, hint);
                    self.advance();
                    self.text(word)?;
                    continue;
                }
                break;
            }
            let start = self.advance().span;
            if word == "Idempotent" {
                options.idempotent = true;
                continue;
            }
            if word == "CalcOrder" {
                let cost = self.expression()?;
                self.once(word, start.to(cost.span), options.cost.is_some());
                options.cost.get_or_insert(cost);
                continue;
            }
            let text = self.text(word)?;
            let span = start.to(text.span);
            let slot = match word {
                "Backend" => &mut options.backend,
                "Shrink" => &mut options.shrink,
                "Language" => &mut options.language,
                _ => {
                    options.required.push(text);
                    continue;
                }
            };
            let again = slot.is_some();
            slot.get_or_insert(text);
            self.once(word, span, again);
        }
        Ok(options)
    }

    fn once(&mut self, word: &str, span: Span, again: bool) {
        if again {
            self.report.error(span, format!("`{word}` is given twice"));
        }
    }

    fn body(&mut self, name: &Text) -> Parsed<Body> {
        if self.accept(";") {
            return Ok(Body::None);
        }
        if self.at("{") {
            return Ok(Body::Inline(self.code(&name.text)?));
        }
        if self.word() != Some("Calls") {
            let hint = self.suggest(&OPTIONS);
            return Err(self.unexpected_with("`{`, `Calls` or an option", hint));
        }
        self.advance();
        let language = match self.token.kind {
            TokenKind::Text(_) => Some(self.text("Calls")?),
            _ => None,
        };
        let mut name = self.name("the name of the function to call")?;
        let mut result = None;
        if self.accept("=") {
            let function = self.name("the name of the function to call")?;
            result = Some(std::mem::replace(&mut name, function));
        }
        self.expect("(", "after the name of the function to call")?;
        let mut count = 0;
        let arguments = match self.accept(")") {
            true => Vec::new(),
            false => self.passed(")", 0, &mut count)?,
        };
        self.semicolon("after the call")?;
        Ok(Body::Calls { language, result, name, arguments })
    }

    /// One or more arguments of a call, and the sign after them; `count`: all names so far.
    fn passed(&mut self, end: &str, depth: usize, count: &mut usize) -> Parsed<Vec<CallArgument>> {
        let mut list = Vec::new();
        loop {
            let open = self.token.span;
            if self.accept("{") {
                if depth == MAX_STRUCTURES {
                    let message =
                        format!("more than {MAX_STRUCTURES} structures inside each other");
                    self.report.error(open, message);
                    return Err(SyntaxError);
                }
                let Ok(fields) = self.passed("}", depth + 1, count) else {
                    self.skip_structures();
                    return Err(SyntaxError);
                };
                list.push(CallArgument::Structure(fields, open));
            } else {
                let name = self.name("the name of a parameter")?;
                *count += 1;
                if *count > parameter::MAX_PARAMETERS {
                    self.too_many("arguments", name.span);
                    return Err(SyntaxError);
                }
                list.push(CallArgument::Name(name));
            }
            if self.accept(end) {
                return Ok(list);
            }
            self.expect(",", &format!("or `{end}` after an argument"))?;
        }
    }

    /// Skips the rest of a call's arguments, whose braces are no blocks of C code.
    fn skip_structures(&mut self) {
        let is_item = |word: &str| ITEMS.contains(&word) || CLASS_ITEMS.contains(&word);
        while ["{", "}", ",", ")"].iter().any(|sign| self.at(sign))
            || self.word().is_some_and(|word| !is_item(word))
        {
            self.advance();
        }
    }

    fn too_many(&mut self, what: &str, span: Span) {
        let message = format!("more than {} {what}", parameter::MAX_PARAMETERS);
        self.report.error(span, message);
    }

    /// A class, starting at its name. Keeps the parts without errors.
    fn class(&mut self, file: &mut File) -> Parsed<()> {
        let name = self.name("the name of the class")?;
        let options = self.options(&OPTIONS[..4])?;
        let open = self.token.span;
        self.expect("{", "and methods after the name of the class")?;
        let mut class = Class { name, options, states: Vec::new(), methods: Vec::new() };
        while !self.at("}") && !self.report.is_full() {
            if matches!(self.token.kind, TokenKind::End | TokenKind::Word("Define" | "DefClass")) {
                self.report.error(open, "this `{` is never closed");
                break;
            }
            let start = self.token.span.start;
            if !self.accept(";") && self.class_item(&mut class).is_err() {
                self.recover(start, &CLASS_ITEMS, true);
            }
        }
        self.accept("}");
        file.classes.push(class);
        Ok(())
    }

    fn class_item(&mut self, class: &mut Class) -> Parsed<()> {
        match self.word() {
            Some("DefState") => {
                self.advance();
                class.states.push(self.code("DefState")?);
            }
            Some("DefMethod") => {
                self.advance();
                class.methods.push(self.function("the name of the method", true)?);
            }
            _ => {
                let hint = self.suggest(&CLASS_ITEMS);
                return Err(self.unexpected_with("`DefMethod`, `DefState` or `}`", hint));
            }
        }
        Ok(())
    }
}
