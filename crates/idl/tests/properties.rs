//! Properties that hold for every file and for any text at all.

use gridrpc_idl::{Kind, parse};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use crate::{arbitrary, check};

const MODULES: [&str; 4] = [
    include_str!("modules/everything.idl"),
    include_str!("modules/pi.idl"),
    include_str!("modules/linpack.idl"),
    include_str!("modules/broken.idl"),
];

/// Words that may confuse a parser.
const PIECES: [&str; 40] = [
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    ";",
    ",",
    ":",
    "\"",
    "'",
    "/*",
    "*/",
    "//",
    "\n",
    "#",
    "# 5 \"x\"\n",
    "Define",
    "DefClass",
    "DefMethod",
    "DefState",
    "Module",
    "Calls",
    "IN",
    "OUT",
    "int",
    "string",
    "CalcOrder",
    "Shrink",
    "*",
    "-",
    "^",
    "? 1 :",
    "9223372036854775807",
    "0x",
    "é",
    "\0",
    "\\",
    "R\"(",
    "allocate",
];

/// Damage to a file.
#[derive(Clone, Debug)]
enum Damage {
    /// A piece inserted.
    Insert(Index, &'static str),
    /// Characters removed.
    Remove(Index, usize),
    /// A part duplicated elsewhere.
    Copy(Index, Index, usize),
    /// The end cut off.
    Cut(Index),
}

impl Damage {
    fn apply(&self, text: &mut String) {
        let place = |text: &str, at: &Index| {
            let mut at = at.index(text.len() + 1);
            while !text.is_char_boundary(at) {
                at -= 1;
            }
            at
        };
        let end = |text: &str, start: usize, len: usize| {
            text[start..].char_indices().nth(len).map_or(text.len(), |(at, _)| start + at)
        };
        match self {
            Damage::Insert(at, piece) => text.insert_str(place(text, at), piece),
            Damage::Remove(at, len) => {
                let start = place(text, at);
                text.replace_range(start..end(text, start, *len), "");
            }
            Damage::Copy(from, to, len) => {
                let start = place(text, from);
                let part = text[start..end(text, start, *len)].to_owned();
                text.insert_str(place(text, to), &part);
            }
            Damage::Cut(at) => text.truncate(place(text, at)),
        }
    }

    fn any() -> impl Strategy<Value = Damage> {
        prop_oneof![
            3 => (any::<Index>(), select(&PIECES[..])).prop_map(|(at, piece)| Damage::Insert(at, piece)),
            3 => (any::<Index>(), 1..20usize).prop_map(|(at, len)| Damage::Remove(at, len)),
            1 => (any::<Index>(), any::<Index>(), 1..200usize)
                .prop_map(|(from, to, len)| Damage::Copy(from, to, len)),
            1 => any::<Index>().prop_map(Damage::Cut),
        ]
    }
}

fn config() -> ProptestConfig {
    ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn generated_modules_round_trip(text in arbitrary::source()) {
        let parsed = parse(&text);
        let found: String =
            parsed.diagnostics.iter().map(|found| found.render("generated", &text)).collect();
        prop_assert!(parsed.module.is_some(), "{}", found);
        check::source(&text);
    }

    #[test]
    fn sizes_are_what_arithmetic_without_bounds_says(
        text in arbitrary::expression(false),
        values in vec(prop_oneof![4 => 0..10i64, 1 => -3..0i64, 1 => any::<i64>()], 5),
    ) {
        let source = format!(
            "Module m; Define f(IN long n, IN long m, IN long k, IN long list[16], \
             IN long rows[16], OUT char x[{text}]);"
        );
        let module = parse(&source).module.expect("no errors");
        let Kind::Array { dimensions, .. } = &module.functions[0].parameters[5].kind else {
            panic!("no array");
        };
        let size = dimensions[0].size.as_ref().expect("a size");
        let values = check::Cycle(values);
        prop_assert_eq!(size.evaluate(&values), check::reference(size, &values));
    }

    #[test]
    fn all_sizes_of_generated_modules_are_consistent(
        text in arbitrary::source(),
        values in vec(prop_oneof![4 => 0..10i64, 1 => any::<i64>()], 1..8),
    ) {
        check::sizes(&text, values);
    }

    #[test]
    fn any_text_does_no_harm(text in "\\PC{0,200}") {
        check::source(&text);
    }

    #[test]
    fn any_words_do_no_harm(words in vec(select(&PIECES[..]), 0..60)) {
        check::source(&words.join(" "));
        check::source(&format!("Module m; Define f({}", words.join(" ")));
        check::source(&format!("Module m; Define f(IN int n, OUT int x[{}]);", words.join(" ")));
    }

    #[test]
    fn damaged_files_do_no_harm(
        module in select(&MODULES[..]),
        damages in vec(Damage::any(), 1..6),
    ) {
        let mut text = module.to_owned();
        damages.iter().for_each(|damage| damage.apply(&mut text));
        check::source(&text);
    }
}
