//! Calls of module functions with arguments from the caller's memory, and results back into it.

mod argument;
mod call_size;
mod callback;
mod chunk;
mod chunk_results;
mod detached;
mod limit_exceeded;
mod preload;
mod prepare;
mod prepared;
mod results;
mod search;
mod search_error;
mod sections;
mod sizes;
mod source;
mod target;

pub use argument::{ArgumentError, ArgumentValue, CallResult, Memory, PrepareError, SharedPart};
pub use call_size::{CallSize, size_of_call};
pub use callback::{CallbackFrame, CallbackValue};
pub use chunk::ChunkBuilder;
pub use chunk_results::{ChunkLanding, LandedChunk, LandedColumn, Run};
pub use detached::{DetachError, attach, attach_prepared, detach, detach_call, server_of};
pub use limit_exceeded::{CallLimit, LimitExceeded};
pub use preload::preload;
pub use prepare::prepare;
pub use prepared::{Lending, Prepared};
pub use results::{LandError, Landed, Landing, NewArray};
pub use search::ModuleSearch;
pub use search_error::SearchError;
pub use source::{InterfaceSource, InterfaceSources, LocatedModule};
pub use target::Target;
