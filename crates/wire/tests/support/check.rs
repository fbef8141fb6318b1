//! Invariants for any bytes; shared by the property tests and the fuzz target.

use gridrpc_wire::{
    Chunk, Frame, HEADER_LEN, Message, Order, Place, Ranks, Section, decode_values, encode_values,
};

/// Takes `bytes` for frames one behind the other, and for values in either byte order.
pub fn bytes(bytes: &[u8]) {
    let mut rest = bytes;
    while let Ok(Some((frame, used))) = Frame::parse(rest) {
        assert_eq!(used, HEADER_LEN + frame.body.len());
        check_frame(&frame, &rest[..used]);
        rest = &rest[used..];
    }
    for order in [Order::Little, Order::Big] {
        check_values(bytes, order);
        check_chunk(bytes, order);
        check_ranks(bytes, order);
    }
}

/// A message that decodes has only one encoding in each order.
fn check_frame(frame: &Frame<'_>, bytes: &[u8]) {
    let Ok(message) = Message::decode(frame) else {
        return;
    };
    let (order, descriptors) = (frame.header.order, frame.header.descriptors);
    let mut again = Vec::new();
    message.encode_with(descriptors, order, &mut again).expect("what decodes can be encoded");
    assert_eq!(again, bytes, "{message:?}");

    let mut turned = Vec::new();
    message.encode_with(descriptors, other(order), &mut turned).expect("in the other order too");
    let (turned, used) = Frame::parse(&turned).expect("a valid frame").expect("a whole frame");
    assert_eq!(used, bytes.len());
    assert_eq!(turned.header.descriptors, descriptors);
    assert_eq!(Message::decode(&turned).as_ref(), Ok(&message));

    if let Message::Call { sections, .. }
    | Message::Reply { sections, .. }
    | Message::Callback { sections, .. }
    | Message::CallbackReply { sections, .. } = &message
        && let Some(Section { place: Place::Inline(values), .. }) = sections.first()
    {
        check_values(values, order);
    }
}

/// The same for values. They are compared as bytes, since a NaN is not equal to itself.
fn check_values(bytes: &[u8], order: Order) {
    let Ok(values) = decode_values(bytes, order) else {
        return;
    };
    let mut again = Vec::new();
    encode_values(&values, order, &mut again).expect("what decodes can be encoded");
    assert_eq!(again, bytes, "{values:?}");

    let mut turned = Vec::new();
    encode_values(&values, other(order), &mut turned).expect("in the other order too");
    let turned = decode_values(&turned, other(order)).expect("valid values");
    let mut back = Vec::new();
    encode_values(&turned, order, &mut back).expect("turned back");
    assert_eq!(back, bytes, "{values:?}");
}

fn check_chunk(bytes: &[u8], order: Order) {
    let Ok((chunk, values)) = Chunk::decode(bytes, order) else {
        return;
    };
    assert!(Chunk::is_one(bytes));
    let mut again = Vec::new();
    chunk.encode(&values, order, &mut again).expect("what decodes can be encoded");
    assert_eq!(again, bytes, "{chunk:?} {values:?}");
}

fn check_ranks(bytes: &[u8], order: Order) {
    let Ok((Some(ranks), rest)) = Ranks::take(bytes, order) else {
        return;
    };
    let mut again = Vec::new();
    ranks.encode(order, &mut again).expect("what decodes can be encoded");
    again.extend_from_slice(rest);
    assert_eq!(again, bytes, "{ranks:?}");
}

fn other(order: Order) -> Order {
    match order {
        Order::Little => Order::Big,
        Order::Big => Order::Little,
    }
}
