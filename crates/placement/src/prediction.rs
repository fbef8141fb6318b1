//! Predicted time of a call on a server.

/// Bandwidth until a client has measured it, bytes per second: that of a link with 1 Gbit/s.
pub const ASSUMED_BANDWIDTH: f64 = 1.25e8;

/// Work of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Work {
    /// Bytes of the arguments.
    pub bytes_in: f64,
    /// Bytes of the results.
    pub bytes_out: f64,
    /// Number of operations: `CalcOrder` of its interface. A function without one has one operation, so that speeds are
    /// calls per second.
    pub operations: f64,
}

/// A server that could run a call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Candidate {
    /// Operations per second of a call that runs alone.
    pub speed: f64,
    /// Calls of others that run or wait, for each core.
    pub load: f64,
    /// Age of the load, s.
    pub age: f64,
    /// Number of its cores.
    pub cores: f64,
    /// The client's own calls, for each core.
    pub own_load: f64,
    /// Time until a core is free of the client's own calls, s.
    pub wait: f64,
    /// Time that earlier calls of the client have waited at the server for calls of others, s.
    pub queue: f64,
    /// Bytes per second to the server.
    pub bandwidth_in: f64,
    /// Bytes per second from the server.
    pub bandwidth_out: f64,
    /// Bytes of the arguments that the server has already.
    pub bytes_there: f64,
    /// Whether it takes no calls now.
    pub is_full: bool,
    /// Whether the client has measured its speed. Of equal candidates, one that has not been measured is chosen.
    pub is_measured: bool,
}

/// The predicted time of a call, s.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prediction {
    /// Waiting for other calls of the client.
    pub wait: f64,
    /// Sending the arguments.
    pub send: f64,
    /// Running the function, with the calls of others.
    pub run: f64,
    /// Receiving the results.
    pub receive: f64,
}

impl Prediction {
    /// The whole call.
    #[must_use]
    pub fn total(&self) -> f64 {
        self.wait + self.send + self.run + self.receive
    }
}

impl Candidate {
    /// How long a call keeps a core from other calls of the client, s, as if it were sent when a core is free. While
    /// there are calls of others, it waits for them at least as long as earlier calls did.
    #[must_use]
    pub fn core_time(&self, work: &Work) -> f64 {
        let predicted = self.predict(work);
        let alone = seconds(work.operations, self.speed);
        predicted.send + predicted.run.max(alone + self.queue.max(0.0)) + predicted.receive
    }

    /// The predicted time of a call on this server.
    #[must_use]
    pub fn predict(&self, work: &Work) -> Prediction {
        // Calls count as load while their data is on the way, too.
        let slowdown = self.load.max(0.0) + 1.0;
        Prediction {
            wait: if self.wait.is_nan() { f64::INFINITY } else { self.wait.max(0.0) },
            send: seconds(work.bytes_in - self.bytes_there, self.bandwidth_in / slowdown),
            run: seconds(work.operations, self.speed / slowdown),
            receive: seconds(work.bytes_out, self.bandwidth_out / slowdown),
        }
    }
}

/// Time for an amount at a rate. Rates that make no sense take forever.
fn seconds(amount: f64, rate: f64) -> f64 {
    if amount <= 0.0 {
        0.0
    } else if rate.is_finite() && rate > 0.0 && amount.is_finite() {
        amount / rate
    } else {
        f64::INFINITY
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVER: Candidate = Candidate {
        speed: 1e9,
        load: 3.0,
        age: 0.0,
        cores: 4.0,
        own_load: 0.0,
        wait: 0.0,
        queue: 0.0,
        bandwidth_in: 1e6,
        bandwidth_out: 2e6,
        bytes_there: 0.0,
        is_full: false,
        is_measured: true,
    };

    #[test]
    fn the_terms_are_those_of_the_formula() {
        let work = Work { bytes_in: 2e6, bytes_out: 1e6, operations: 5e8 };
        let predicted = SERVER.predict(&work);
        assert_eq!(predicted, Prediction { wait: 0.0, send: 8.0, run: 2.0, receive: 2.0 });
        assert_eq!(predicted.total(), 12.0);
    }

    #[test]
    fn own_calls_are_waited_for_and_counted_once() {
        let work = Work { bytes_in: 2e6, bytes_out: 1e6, operations: 5e8 };
        let predicted = Candidate { own_load: 2.0, wait: 1.5, ..SERVER }.predict(&work);
        assert_eq!(predicted.total(), 13.5);
        assert_eq!(Candidate { wait: -1.0, ..SERVER }.predict(&work).total(), 12.0);
        assert_eq!(Candidate { wait: f64::NAN, ..SERVER }.predict(&work).total(), f64::INFINITY);
    }

    #[test]
    fn a_core_is_kept_as_long_as_calls_of_others_take() {
        let work = Work { bytes_in: 2e6, bytes_out: 1e6, operations: 5e8 };
        let queues = [f64::NAN, -1.0, 1.0, 4.0].map(|queue| Candidate { queue, ..SERVER });
        assert_eq!(queues.map(|server| server.core_time(&work)), [12.0, 12.0, 12.0, 14.5]);
        assert_eq!(Candidate { queue: 4.0, ..SERVER }.predict(&work).total(), 12.0);
        assert_eq!(Candidate { wait: 9.0, ..SERVER }.core_time(&work), 12.0);
    }

    #[test]
    fn bytes_that_are_there_are_not_sent() {
        let work = Work { bytes_in: 2e6, ..Work::default() };
        assert_eq!(Candidate { bytes_there: 1.5e6, ..SERVER }.predict(&work).send, 2.0);
        assert_eq!(Candidate { bytes_there: 3e6, ..SERVER }.predict(&work).send, 0.0);
    }

    #[test]
    fn rates_that_make_no_sense_take_for_ever() {
        let work = Work { bytes_in: 1.0, bytes_out: 1.0, operations: 1.0 };
        for rate in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(Candidate { speed: rate, ..SERVER }.predict(&work).run, f64::INFINITY);
            let lying = Candidate { bandwidth_in: rate, ..SERVER };
            assert_eq!(lying.predict(&work).send, f64::INFINITY);
        }
        // A negative load makes no server faster than an idle one.
        let negative = Candidate { load: -5.0, ..SERVER };
        assert_eq!(negative.predict(&work).run, 1e-9);
    }
}
