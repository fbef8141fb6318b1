//! A call that a directory has helped to place: it counts while it runs, and its times teach.

use std::sync::Arc;

use gridrpc_client::Profile;
use gridrpc_lookup::{CallTimes, ChosenServer, ClientCall, Directories};

/// A call at a server that was chosen. It counts until it is dropped.
#[derive(Debug)]
pub struct CountedCall {
    directories: Arc<Directories>,
    server: ChosenServer,
    function: String,
    /// By `CalcOrder`.
    operations: Option<f64>,
    times: Option<CallTimes>,
    begun: ClientCall,
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
        let seconds = |stamp: u64| if stamp == 0 { f64::NAN } else { stamp as f64 / 1e9 };
        self.times = Some(CallTimes {
            sent: seconds(sent),
            received: seconds(stamps.received),
            started: seconds(stamps.calc_in),
            computed: seconds(stamps.calc_out),
            returned: seconds(retrieve),
            error: 4.0 * clock_error as f64 / 1e9,
            bytes_in: bytes_in as f64,
            bytes_out: bytes_out as f64,
            operations: self.operations.unwrap_or(1.0),
            has_cost: self.operations.is_some(),
        });
    }
}

impl Drop for CountedCall {
    fn drop(&mut self) {
        let CountedCall { directories, server, function, times, begun, .. } = self;
        directories.end(server, *begun, function, times.as_ref());
    }
}
