//! Lost workers: their encoding in messages, and the remains of a call with many items.

use gridrpc_core::{Cause, Loss};
use gridrpc_link::payload::Incoming;
use gridrpc_wire::{HostLoss, Order, RemoteError, Value, decode_values, encode_values};

use crate::call::Outcome;

/// Reason of a loss whose number is the worker's memory limit in KiB, and not a signal.
const MEMORY_LIMIT: &str = "limit `memory`";

/// Encodes a loss for the wire.
pub fn loss_on_the_wire(loss: &Loss) -> HostLoss<'_> {
    let Loss { worker, pid, host, cause, stderr } = loss;
    let (cause, number, why) = match cause {
        Cause::Exit(status) => (HostLoss::EXIT, *status, ""),
        Cause::Signal { signal, out_of_memory: false } => (HostLoss::SIGNAL, *signal, ""),
        Cause::Signal { signal, out_of_memory: true } => (HostLoss::OUT_OF_MEMORY, *signal, ""),
        Cause::MemoryLimit(limit) => {
            let kib = u32::try_from(limit >> 10).unwrap_or(u32::MAX);
            (HostLoss::OUT_OF_MEMORY, kib, MEMORY_LIMIT)
        }
        Cause::Failed(why) => (HostLoss::FAILED, 0, why.as_str()),
        Cause::Shortage(why) => (HostLoss::SHORTAGE, 0, why.as_str()),
    };
    HostLoss { worker: *worker, pid: *pid, cause, number, why, host, stderr }
}

/// Decodes a loss that an agent has reported.
pub fn loss_from_the_wire(loss: &HostLoss<'_>) -> Loss {
    let cause = match loss.cause {
        HostLoss::EXIT => Cause::Exit(loss.number),
        HostLoss::SIGNAL => Cause::Signal { signal: loss.number, out_of_memory: false },
        HostLoss::OUT_OF_MEMORY if loss.why == MEMORY_LIMIT => {
            Cause::MemoryLimit(u64::from(loss.number) << 10)
        }
        HostLoss::OUT_OF_MEMORY => Cause::Signal { signal: loss.number, out_of_memory: true },
        HostLoss::SHORTAGE => Cause::Shortage(loss.why.to_owned()),
        _ => Cause::Failed(loss.why.to_owned()),
    };
    Loss {
        worker: loss.worker,
        pid: loss.pid,
        host: loss.host.to_owned(),
        cause,
        stderr: loss.stderr.to_owned(),
    }
}

/// A call with many items whose worker was lost. As an [`Outcome`] it is the error [`RemoteError::ItemLost`]: section
/// 0 describes the loss, the following sections hold the results.
#[derive(Debug)]
pub struct LostItems {
    /// How the worker was lost.
    pub loss: Loss,
    /// Number of items that have ended. Their results are kept.
    pub ended: u64,
    /// Whether the next item was running and is lost.
    pub running: bool,
    /// Results as the worker wrote them.
    pub results: Vec<Incoming>,
    /// The byte order of the numbers in the results.
    pub order: Order,
}

impl LostItems {
    /// Converts it to the outcome of a call of this function.
    pub(crate) fn into_outcome(self, function: &str) -> Outcome {
        let LostItems { loss, ended, running, results, order } = self;
        let HostLoss { worker, pid, cause, number, why, host, stderr } = loss_on_the_wire(&loss);
        let text = |text: &str| Value::Text(text.to_owned());
        let values = [
            Value::Int(ended.cast_signed()),
            Value::Int(running.into()),
            Value::Int(worker.into()),
            Value::Int(pid.into()),
            text(host),
            Value::Int(cause.into()),
            Value::Int(number.into()),
            text(why),
            text(stderr),
        ];
        let mut head = Vec::new();
        if encode_values(&values, order, &mut head).is_err() {
            head.clear();
        }
        let sections = std::iter::once(Incoming::Bytes(head)).chain(results).collect();
        let error = RemoteError::ItemLost.name().to_owned();
        let message = format!("a worker was lost that ran {function}");
        Outcome::Raised { error, message, trace: String::new(), sections, order }
    }

    /// Whether `error` is the error name of lost items.
    #[must_use]
    pub fn are_told(error: &str) -> bool {
        RemoteError::from_name(error) == Some(RemoteError::ItemLost)
    }

    /// Decodes the sections of that error. Returns `None` if they are malformed.
    #[must_use]
    pub fn decode(sections: Vec<Incoming>, order: Order) -> Option<LostItems> {
        let mut sections = sections.into_iter();
        let values = decode_values(sections.next()?.bytes(), order).ok()?;
        let number = |at: usize| match values.get(at)? {
            Value::Int(number) => u64::try_from(*number).ok(),
            _ => None,
        };
        let short = |at| u32::try_from(number(at)?).ok();
        let text = |at: usize| match values.get(at)? {
            Value::Text(text) => Some(text.as_str()),
            _ => None,
        };
        let loss = HostLoss {
            worker: short(2)?,
            pid: short(3)?,
            host: text(4)?,
            cause: u8::try_from(number(5)?).ok()?,
            number: short(6)?,
            why: text(7)?,
            stderr: text(8)?,
        };
        Some(LostItems {
            loss: loss_from_the_wire(&loss),
            ended: number(0)?,
            running: number(1)? != 0,
            results: sections.collect(),
            order,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_memory_limit_reaches_the_client() {
        let (host, stderr) = ("node".to_owned(), String::new());
        let cause = Cause::MemoryLimit(512 << 20);
        let loss = Loss { worker: 3, pid: 77, host, cause, stderr };
        let decoded = loss_from_the_wire(&loss_on_the_wire(&loss));
        assert_eq!(decoded, loss);
        assert!(
            decoded.to_string().ends_with("had used all of its 512 MiB of memory (limit `memory`)")
        );
    }

    #[test]
    fn an_outcome_tells_all_that_is_left() {
        let cause = Cause::Signal { signal: 9, out_of_memory: true };
        let (host, stderr) = ("node".to_owned(), "last words".to_owned());
        let loss = Loss { worker: 3, pid: 77, host, cause, stderr };
        let results = vec![Incoming::Bytes(vec![1, 2])];
        let order = Order::FOREIGN;
        let lost = LostItems { loss: loss.clone(), ended: 5, running: true, results, order };
        let Outcome::Raised { error, message, sections, order, .. } = lost.into_outcome("f") else {
            panic!("it is an error")
        };
        assert!(LostItems::are_told(&error) && !LostItems::are_told("ItemLost"));
        assert_eq!(message, "a worker was lost that ran f");
        let lost = LostItems::decode(sections, order).unwrap();
        assert_eq!((lost.loss, lost.ended, lost.running), (loss, 5, true));
        assert_eq!(lost.results[0].bytes(), [1, 2]);
        assert!(LostItems::decode(vec![Incoming::Bytes(vec![9])], order).is_none());
        assert!(LostItems::decode(Vec::new(), order).is_none());
    }
}
