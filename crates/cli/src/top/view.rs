//! What `gridrpc top` shows.

use super::error::TopError;

/// Statistics that are shown again and again.
pub(super) trait View {
    /// Its subject, for messages.
    fn name(&self) -> String;

    /// A table, limited to this width and height.
    fn table(&self, columns: usize, lines: usize) -> String;

    /// A line for a log.
    fn line(&self) -> String;

    /// A JSON document, in one line.
    fn json(&self) -> String;

    /// Requests new statistics.
    ///
    /// # Errors
    /// When there will be none.
    fn refresh(&mut self) -> Result<Refreshed, TopError>;
}

/// Result of a request for statistics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refreshed {
    New,
    /// There is no answer yet.
    Late,
    /// It has ended.
    Gone,
}
