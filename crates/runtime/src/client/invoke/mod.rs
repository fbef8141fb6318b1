//! Calls of module functions from the caller's own memory, and results back into it.

mod callback;
mod chunk;
mod chunk_landing;
mod given;
mod landing;
mod preload;
mod prepare;
mod prepared;
mod sections;
mod sizes;
mod target;

pub use callback::{CallbackFrame, CallbackValue};
pub use chunk::ChunkBuilder;
pub use chunk_landing::{ChunkLanding, LandedChunk, LandedColumn, Run};
pub use given::{ArgumentError, Given, Memory, PrepareError, SharedPart};
pub use landing::{LandError, Landed, Landing, MadeArray};
pub use prepare::prepare;
pub use prepared::{CallOptions, Lending, Prepared};
pub use target::{ModuleSearch, SearchError, Target};
