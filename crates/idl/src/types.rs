//! Types of scalars and array elements.

use std::ffi::{c_char, c_int, c_long, c_longlong, c_short};

/// Type of a scalar or array element. C types have this machine's sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // the names say it
pub enum Type {
    Char,
    UChar,
    Short,
    UShort,
    Int,
    UInt,
    Long,
    ULong,
    LongLong,
    ULongLong,
    Float,
    Double,
    /// `float _Complex`.
    SComplex,
    /// `double _Complex`.
    DComplex,
    Int8,
    Int16,
    Int32,
    Int64,
    UInt8,
    UInt16,
    UInt32,
    UInt64,
    /// A NUL-terminated string.
    String,
    /// A file whose content is transferred; the function receives a local path.
    Filename,
}

impl Type {
    /// Every type.
    pub const ALL: [Type; 24] = [
        Type::Char,
        Type::UChar,
        Type::Short,
        Type::UShort,
        Type::Int,
        Type::UInt,
        Type::Long,
        Type::ULong,
        Type::LongLong,
        Type::ULongLong,
        Type::Float,
        Type::Double,
        Type::SComplex,
        Type::DComplex,
        Type::Int8,
        Type::Int16,
        Type::Int32,
        Type::Int64,
        Type::UInt8,
        Type::UInt16,
        Type::UInt32,
        Type::UInt64,
        Type::String,
        Type::Filename,
    ];

    /// Size on this machine, bytes; `None` for strings and files, which have no fixed size.
    #[must_use]
    pub fn size(self) -> Option<usize> {
        Some(match self {
            Type::Char | Type::UChar | Type::Int8 | Type::UInt8 => 1,
            Type::Short | Type::UShort => size_of::<c_short>(),
            Type::Int | Type::UInt => size_of::<c_int>(),
            Type::Long | Type::ULong => size_of::<c_long>(),
            Type::LongLong | Type::ULongLong => size_of::<c_longlong>(),
            Type::Int16 | Type::UInt16 => 2,
            Type::Float | Type::Int32 | Type::UInt32 => 4,
            Type::Double | Type::SComplex | Type::Int64 | Type::UInt64 => 8,
            Type::DComplex => 16,
            Type::String | Type::Filename => return None,
        })
    }

    /// The type in C; `char *` for strings and files.
    #[must_use]
    pub fn c_name(self) -> &'static str {
        match self {
            Type::Char => "char",
            Type::UChar => "unsigned char",
            Type::Short => "short",
            Type::UShort => "unsigned short",
            Type::Int => "int",
            Type::UInt => "unsigned int",
            Type::Long => "long",
            Type::ULong => "unsigned long",
            Type::LongLong => "long long",
            Type::ULongLong => "unsigned long long",
            Type::Float => "float",
            Type::Double => "double",
            Type::SComplex => "float _Complex",
            Type::DComplex => "double _Complex",
            Type::Int8 => "int8_t",
            Type::Int16 => "int16_t",
            Type::Int32 => "int32_t",
            Type::Int64 => "int64_t",
            Type::UInt8 => "uint8_t",
            Type::UInt16 => "uint16_t",
            Type::UInt32 => "uint32_t",
            Type::UInt64 => "uint64_t",
            Type::String | Type::Filename => "char *",
        }
    }

    /// The type in an interface.
    #[must_use]
    pub fn idl_name(self) -> &'static str {
        match self {
            Type::LongLong => "longlong",
            Type::ULongLong => "unsigned longlong",
            Type::SComplex => "scomplex",
            Type::DComplex => "dcomplex",
            Type::Int8 => "int8",
            Type::Int16 => "int16",
            Type::Int32 => "int32",
            Type::Int64 => "int64",
            Type::UInt8 => "uint8",
            Type::UInt16 => "uint16",
            Type::UInt32 => "uint32",
            Type::UInt64 => "uint64",
            Type::String => "string",
            Type::Filename => "filename",
            _ => self.c_name(),
        }
    }

    /// Whether it is an integer, including `char`.
    #[must_use]
    pub fn is_integer(self) -> bool {
        !self.is_text()
            && !matches!(self, Type::Float | Type::Double | Type::SComplex | Type::DComplex)
    }

    /// Whether it can be negative: signed integers, reals and complex numbers.
    #[must_use]
    pub fn is_signed(self) -> bool {
        match self {
            // Machine-dependent in C.
            Type::Char => c_char::MIN != 0,
            Type::UChar
            | Type::UShort
            | Type::UInt
            | Type::ULong
            | Type::ULongLong
            | Type::UInt8
            | Type::UInt16
            | Type::UInt32
            | Type::UInt64 => false,
            _ => !self.is_text(),
        }
    }

    /// Whether it is a string or a file, passed as `char *`.
    #[must_use]
    pub fn is_text(self) -> bool {
        matches!(self, Type::String | Type::Filename)
    }

    /// The type named by several words, as in `unsigned long int`; `None` if there is none.
    pub(crate) fn of_words(words: &[&str]) -> Option<Type> {
        let count = |word| words.iter().filter(|other| **other == word).count();
        let (signed, unsigned) = (count("signed"), count("unsigned"));
        if words.is_empty() || signed + unsigned > 1 {
            return None;
        }
        let rest: Vec<&str> =
            words.iter().copied().filter(|word| !matches!(*word, "signed" | "unsigned")).collect();
        let bare = signed + unsigned == 0;
        if bare && let [word] = rest[..] {
            return Type::of_word(word);
        }
        // Only integers remain: C allows any order of the words and an optional `int`.
        let int = count("int");
        let (char, short) = (count("char"), count("short"));
        let long = count("long") + 2 * count("longlong");
        if int + char + short + count("long") + count("longlong") != rest.len() || int > 1 {
            return None;
        }
        match (char, short, long) {
            (1, 0, 0) if int == 0 && signed == 1 => Some(Type::Int8),
            (1, 0, 0) if int == 0 => Some(Type::UChar),
            (0, 0, 0) => Some(if unsigned == 1 { Type::UInt } else { Type::Int }),
            (0, 1, 0) => Some(if unsigned == 1 { Type::UShort } else { Type::Short }),
            (0, 0, 1) => Some(if unsigned == 1 { Type::ULong } else { Type::Long }),
            (0, 0, 2) => Some(if unsigned == 1 { Type::ULongLong } else { Type::LongLong }),
            _ => None,
        }
    }

    fn of_word(word: &str) -> Option<Type> {
        Type::ALL.into_iter().find(|kind| kind.idl_name() == word)
    }

    /// Whether types are made of this word.
    pub(crate) fn is_word(word: &str) -> bool {
        matches!(word, "signed" | "unsigned" | "filepointer" | "void")
            || Type::of_word(word).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Option<Type> {
        Type::of_words(&text.split_whitespace().collect::<Vec<_>>())
    }

    #[test]
    fn every_type_is_known_by_the_name_it_is_printed_with() {
        for kind in Type::ALL {
            assert_eq!(of(kind.idl_name()), Some(kind));
        }
    }

    #[test]
    fn integers_may_be_written_as_in_c() {
        assert_eq!(of("unsigned"), Some(Type::UInt));
        assert_eq!(of("unsigned long int"), Some(Type::ULong));
        assert_eq!(of("long unsigned int"), Some(Type::ULong));
        assert_eq!(of("int long unsigned long"), Some(Type::ULongLong));
        assert_eq!(of("long long"), Some(Type::LongLong));
        assert_eq!(of("short int"), Some(Type::Short));
        assert_eq!(of("signed char"), Some(Type::Int8));
    }

    #[test]
    fn words_that_make_no_type() {
        for text in [
            "",
            "unsigned double",
            "long double",
            "int int",
            "short long",
            "long long long",
            "unsigned signed int",
            "unsigned int8",
            "string int",
            "unsigned unsigned",
            "void",
            "long longlong",
        ] {
            assert_eq!(of(text), None, "{text}");
        }
    }
}
