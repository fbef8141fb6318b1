//! A call of a module function on several processes: the header before its values.

use crate::bytes::{Order, Reader, WireError, Writer};

/// Environment variable of workers whose host is a job of several nodes: number of nodes, `x`, and cores of each.
pub const NODES: &str = "GRIDRPC_NODES";
/// Replaces the number of values: no function has so many parameters.
const MARK: u16 = u16::MAX - 1;
/// Length of the header before the command, bytes.
const HEAD_LEN: usize = 14;

/// Processes of a parallel function, and the command that starts them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ranks {
    /// Number of processes.
    pub ranks: u32,
    /// Number of threads of each.
    pub threads: u32,
    /// The command that starts them, with its arguments; empty for the default.
    pub command: String,
}

impl Ranks {
    /// Encodes it; the values follow.
    ///
    /// # Errors
    /// When the command is too long; `out` is then as it was.
    pub fn encode(&self, order: Order, out: &mut Vec<u8>) -> Result<(), WireError> {
        let start = out.len();
        let mut writer = Writer { out, order };
        writer.u16(MARK);
        writer.u32(self.ranks);
        writer.u32(self.threads);
        let written = writer.text(&self.command);
        if written.is_err() {
            out.truncate(start);
        }
        written
    }

    /// Takes the header off the bytes of section 0 of a call received in `order`, if present. The remaining bytes are
    /// the values.
    ///
    /// # Errors
    /// When the header is malformed.
    pub fn take(bytes: &[u8], order: Order) -> Result<(Option<Ranks>, &[u8]), WireError> {
        if !bytes.starts_with(&Self::mark(order)) {
            return Ok((None, bytes));
        }
        let mut reader = Reader::new(bytes, order);
        reader.u16("mark of ranks")?;
        let ranks = reader.u32("number of ranks")?;
        let threads = reader.u32("number of threads")?;
        let command = reader.text("command")?;
        let taken = HEAD_LEN + command.len();
        Ok((Some(Ranks { ranks, threads, command: command.to_owned() }), &bytes[taken..]))
    }

    fn mark(order: Order) -> [u8; 2] {
        match order {
            Order::Little => MARK.to_le_bytes(),
            Order::Big => MARK.to_be_bytes(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::{Value, decode_values, encode_values};

    #[test]
    fn ranks_come_back_in_both_orders_and_the_values_behind_them() {
        let ranks = Ranks { ranks: 4, threads: 2, command: "mpirun --quiet".into() };
        let values = [Value::Bytes(1), Value::None];
        for order in [Order::Little, Order::Big] {
            let mut bytes = Vec::new();
            ranks.encode(order, &mut bytes).unwrap();
            let head = bytes.len();
            encode_values(&values, order, &mut bytes).unwrap();
            let (taken, rest) = Ranks::take(&bytes, order).unwrap();
            assert_eq!(taken.as_ref(), Some(&ranks));
            assert_eq!(decode_values(rest, order).unwrap(), values);
            for len in 2..head {
                assert!(Ranks::take(&bytes[..len], order).is_err(), "{len} bytes of it");
            }
            assert_eq!(Ranks::take(&bytes[head..], order), Ok((None, &bytes[head..])));
        }
    }
}
