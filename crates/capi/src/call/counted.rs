//! A call that a directory has helped to place: it counts while it runs, and its times teach.

use std::sync::Arc;

use gridrpc_client::Profile;
use gridrpc_lookup::{CallTimes, ChosenServer, Directories, OwnCall};

/// A call at a server that was chosen. It counts until it is dropped.
#[derive(Debug)]
pub struct CountedCall {
    directories: Arc<Directories>,
    server: ChosenServer,
    function: String,
    /// By `CalcOrder`.
    operations: Option<f64>,
    times: Option<CallTimes>,
    begun: OwnCall,
}

impl CountedCall {
    /// Counts a call that begins.
    pub fn begin(
        directories: &Arc<Directories>,
        server: ChosenServer,
        function: &str,
        operations: Option<f64>,
    ) -> CountedCall {
        let begun = directories.begin(&server);
        let (directories, function) = (Arc::clone(directories), function.to_owned());
        CountedCall { directories, server, function, operations, times: None, begun }
    }

    /// The call has returned.
    pub fn returned(&mut self, profile: &Profile) {
        let Profile { sent, stamps, retrieve, bytes_in, bytes_out, clock_error, .. } = *profile;
        let seconds = |from: u64, to: u64| match (from, to) {
            (0, _) | (_, 0) => 0.0,
            _ => to.saturating_sub(from) as f64 / 1e9,
        };
        self.times = Some(CallTimes {
            send: seconds(sent, stamps.received),
            run: seconds(stamps.calc_in, stamps.calc_out),
            receive: seconds(stamps.calc_out, retrieve),
            error: 4.0 * clock_error as f64 / 1e9,
            bytes_in: bytes_in as f64,
            bytes_out: bytes_out as f64,
        });
    }
}

impl Drop for CountedCall {
    fn drop(&mut self) {
        let CountedCall { directories, server, function, operations, times, begun } = self;
        directories.end(server, *begun, function, *times, *operations);
    }
}
