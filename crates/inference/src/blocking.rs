//! Work that would hold up other requests.

use crate::error::InferenceError;

/// Work on more bytes is done on the thread pool for blocking work.
const LARGE: usize = 256 << 10;

/// Runs work on this many bytes, on another thread if they are many.
pub(crate) async fn run<R: Send + 'static>(
    bytes: usize,
    work: impl FnOnce() -> R + Send + 'static,
) -> Result<R, InferenceError> {
    if bytes < LARGE {
        return Ok(work());
    }
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| InferenceError::System(format!("the call was not completed: {error}")))
}
