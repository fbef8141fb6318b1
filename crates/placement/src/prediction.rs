//! Predicted time of a call on a server.

/// Bandwidth until a client has measured it, bytes per second: that of a link with 1 Gbit/s.
pub const ASSUMED_BANDWIDTH: f64 = 1.25e8;

/// What a call needs.
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
    /// Calls that run or wait, for each core.
    pub load: f64,
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
    /// Sending the arguments.
    pub send: f64,
    /// Running the function, with the other calls of the server.
    pub run: f64,
    /// Receiving the results.
    pub receive: f64,
}

impl Prediction {
    /// The whole call.
    #[must_use]
    pub fn total(&self) -> f64 {
        self.send + self.run + self.receive
    }
}

impl Candidate {
    /// The predicted time of a call on this server.
    #[must_use]
    pub fn predict(&self, work: &Work) -> Prediction {
        Prediction {
            send: seconds(work.bytes_in - self.bytes_there, self.bandwidth_in),
            run: seconds(work.operations, self.speed / (self.load.max(0.0) + 1.0)),
            receive: seconds(work.bytes_out, self.bandwidth_out),
        }
    }
}

/// Time for an amount at a rate. Rates that make no sense take for ever.
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
        assert_eq!(predicted, Prediction { send: 2.0, run: 2.0, receive: 0.5 });
        assert_eq!(predicted.total(), 4.5);
    }

    #[test]
    fn bytes_that_are_there_are_not_sent() {
        let work = Work { bytes_in: 2e6, ..Work::default() };
        assert_eq!(Candidate { bytes_there: 1.5e6, ..SERVER }.predict(&work).send, 0.5);
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
