//! Typed arguments of module functions, for client and worker: module files, element types, sizes from scalars,
//! selected elements, lists of strings, and the catalogue of modules.

pub mod catalogue;
pub mod describe;
mod elements;
mod module_file;
mod scalars;
mod sizes;
mod strides;
mod strings;

pub use elements::{callbacks, dtype, integer_fits};
pub use module_file::{
    ModuleError, ModuleFile, interface_hash, interface_text, parse_interface, read_interface,
};
pub use scalars::{Scalar, Scalars, gives_sizes};
pub use sizes::Sizes;
pub use strides::{Shape, gather, scatter};
pub use strings::{
    NamedFile, add_text, decode_files, decode_texts, encode_files, encode_texts, list_texts,
};
