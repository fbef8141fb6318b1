//! Properties that hold for every message and for any bytes at all.

use gridrpc_wire::{
    Frame, HEADER_LEN, Header, Kind, Message, Order, VERSION, decode_values, encode_values,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use crate::{arbitrary, check};

/// Some damage to valid bytes.
#[derive(Clone, Debug)]
enum Damage {
    /// Another byte in place of one.
    Byte(Index, u8),
    /// Four bytes at once, as a length or count that lies would be.
    Word(Index, u32),
    /// Bytes put in.
    Insert(Index, Vec<u8>),
    /// The end cut off.
    Cut(Index),
}

impl Damage {
    fn apply(&self, bytes: &mut Vec<u8>) {
        match self {
            Damage::Byte(at, byte) => {
                let at = at.index(bytes.len());
                bytes[at] = *byte;
            }
            Damage::Word(at, word) => {
                let at = at.index(bytes.len());
                let end = bytes.len().min(at + 4);
                bytes[at..end].copy_from_slice(&word.to_le_bytes()[..end - at]);
            }
            Damage::Insert(at, more) => {
                let at = at.index(bytes.len());
                bytes.splice(at..at, more.iter().copied());
            }
            // Never all: there has to be a byte for the next damage.
            Damage::Cut(at) => bytes.truncate(at.index(bytes.len()) + 1),
        }
    }

    fn any() -> impl Strategy<Value = Damage> {
        let lengths = vec![0, 1, 1 << 8, 1 << 16, 1 << 24, 1 << 20, u32::MAX >> 1, u32::MAX];
        prop_oneof![
            any::<(Index, u8)>().prop_map(|(at, byte)| Damage::Byte(at, byte)),
            (any::<Index>(), select(lengths)).prop_map(|(at, word)| Damage::Word(at, word)),
            (any::<Index>(), vec(any::<u8>(), 1..20))
                .prop_map(|(at, more)| Damage::Insert(at, more)),
            any::<Index>().prop_map(Damage::Cut),
        ]
    }
}

/// A frame whose header is true, so that only the body can be at fault.
fn frame_around(kind: Kind, little: bool, body: &[u8]) -> Vec<u8> {
    let len = body.len() as u32;
    let mark = if little { b'l' } else { b'B' };
    let mut frame = vec![b'G', b'R', VERSION, mark, kind as u8, 0, 0, 0];
    frame.extend(if little { len.to_le_bytes() } else { len.to_be_bytes() });
    frame.extend([0; 4]);
    frame.extend(body);
    frame
}

fn config() -> ProptestConfig {
    // A case that failed belongs into the vectors, not into a file of its own.
    ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn messages_round_trip(
        message in arbitrary::message(),
        descriptors in 0..=250u16,
        order in arbitrary::order(),
        before in vec(any::<u8>(), 0..5),
    ) {
        let mut bytes = before.clone();
        message.encode_with(descriptors, order, &mut bytes).unwrap();
        prop_assert_eq!(&bytes[..before.len()], &before, "what was there before stays");
        let (frame, used) = Frame::parse(&bytes[before.len()..]).unwrap().unwrap();
        prop_assert_eq!(used, bytes.len() - before.len());
        let body_len = used - HEADER_LEN;
        let stream = match message {
            Message::Data { stream, .. } | Message::Packed { stream, .. } => stream,
            _ => 0,
        };
        let header = Header { order, kind: message.kind(), descriptors, body_len, stream };
        prop_assert_eq!(frame.header, header);
        prop_assert_eq!(Message::decode(&frame).unwrap(), message);
    }

    #[test]
    fn values_round_trip(values in arbitrary::values(), order in arbitrary::order()) {
        let mut bytes = Vec::new();
        encode_values(&values, order, &mut bytes).unwrap();
        prop_assert_eq!(decode_values(&bytes, order).unwrap(), values);
    }

    #[test]
    fn frames_behind_each_other_stay_apart(
        messages in vec((arbitrary::message(), arbitrary::order()), 0..5),
    ) {
        let mut bytes = Vec::new();
        for (message, order) in &messages {
            message.encode(*order, &mut bytes).unwrap();
        }
        let mut rest = &bytes[..];
        for (message, _) in &messages {
            let (frame, used) = Frame::parse(rest).unwrap().unwrap();
            prop_assert_eq!(&Message::decode(&frame).unwrap(), message);
            rest = &rest[used..];
        }
        prop_assert!(rest.is_empty());
    }

    #[test]
    fn a_frame_is_not_whole_before_its_last_byte(
        message in arbitrary::message(),
        order in arbitrary::order(),
        at in any::<Index>(),
    ) {
        let mut bytes = Vec::new();
        message.encode(order, &mut bytes).unwrap();
        let cut = at.index(bytes.len());
        prop_assert_eq!(Frame::parse(&bytes[..cut]), Ok(None));
    }

    #[test]
    fn a_body_cut_short_is_no_message(
        message in arbitrary::message(),
        order in arbitrary::order(),
        at in any::<Index>(),
    ) {
        let mut bytes = Vec::new();
        message.encode(order, &mut bytes).unwrap();
        let (frame, _) = Frame::parse(&bytes).unwrap().unwrap();
        // Data is whatever there is.
        let is_data = matches!(message.kind(), Kind::Data | Kind::Packed);
        prop_assume!(!is_data && !frame.body.is_empty());
        let cut = Frame { body: &frame.body[..at.index(frame.body.len())], ..frame };
        prop_assert!(Message::decode(&cut).is_err());
    }

    #[test]
    fn random_bytes_do_no_harm(bytes in vec(any::<u8>(), 0..400)) {
        check::bytes(&bytes);
    }

    #[test]
    fn random_bodies_do_no_harm(
        kind in select(Kind::ALL.to_vec()),
        little in any::<bool>(),
        // Mostly zeros, as real counts and lengths are; else nearly all are cut short.
        body in vec(prop_oneof![3 => Just(0), 1 => 0..4u8, 1 => any::<u8>()], 0..120),
    ) {
        check::bytes(&frame_around(kind, little, &body));
        check::bytes(&body);
    }

    #[test]
    fn damaged_frames_do_no_harm(
        message in arbitrary::message(),
        order in arbitrary::order(),
        damages in vec(Damage::any(), 1..4),
    ) {
        let mut bytes = Vec::new();
        message.encode(order, &mut bytes).unwrap();
        damages.iter().for_each(|damage| damage.apply(&mut bytes));
        check::bytes(&bytes);
        // And so that damage which changed the length gets beyond the header.
        if let Some(body) = bytes.get(HEADER_LEN..) {
            check::bytes(&frame_around(message.kind(), order == Order::Little, body));
        }
    }

    #[test]
    fn damaged_values_do_no_harm(
        values in arbitrary::values(),
        order in arbitrary::order(),
        damages in vec(Damage::any(), 1..4),
    ) {
        let mut bytes = Vec::new();
        encode_values(&values, order, &mut bytes).unwrap();
        damages.iter().for_each(|damage| damage.apply(&mut bytes));
        check::bytes(&bytes);
    }
}
