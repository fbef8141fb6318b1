//! Typed arguments of module functions, as client and worker both see them: module files, element
//! types, sizes from scalars, selected elements, lists of strings.

mod elements;
mod file;
mod runs;
mod scalars;
mod sizes;
mod texts;

pub use elements::{callbacks, dtype, integer_fits};
pub use file::{ModuleError, ModuleFile, read_interface};
pub use runs::{Shape, gather, scatter};
pub(crate) use scalars::gives_sizes;
pub use scalars::{Scalar, Scalars};
pub use sizes::Sizes;
pub use texts::{
    NamedFile, add_text, decode_files, decode_texts, encode_files, encode_texts, list_texts,
};
