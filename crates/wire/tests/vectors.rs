//! The published test vectors: every one decodes to what it describes, in both byte orders,
//! and what it describes encodes to the same bytes; the invalid ones give the expected error.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use gridrpc_wire::{
    DType, Frame, HostCall, Kind, Message, Order, Place, Section, Value, WireError, decode_values,
    encode_values,
};

use crate::json;

const ORDERS: [(&str, Order); 2] = [("little", Order::Little), ("big", Order::Big)];

/// One block of the file.
struct Vector(BTreeMap<String, String>);

impl Vector {
    fn get(&self, key: &str) -> &str {
        self.0.get(key).unwrap_or_else(|| panic!("no `{key}` in {:?}", self.0))
    }

    fn has(&self, key: &str) -> bool {
        self.0.contains_key(key)
    }

    fn json(&self, key: &str) -> serde_json::Value {
        let text = self.get(key);
        serde_json::from_str(text).unwrap_or_else(|error| panic!("{error} in {text}"))
    }

    /// The bytes in each order that the vector has.
    fn bytes(&self) -> Vec<(Order, Vec<u8>)> {
        let bytes = |(key, order)| {
            self.0.get(key).map(|digits: &String| (order, json::bytes_of_hex(digits)))
        };
        ORDERS.into_iter().filter_map(bytes).collect()
    }
}

fn vectors() -> Vec<Vector> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors/v3.txt");
    let text = std::fs::read_to_string(&path).expect("the file of vectors");
    let mut vectors = vec![Vector(BTreeMap::new())];
    for line in text.lines() {
        if line.is_empty() || line.starts_with('#') {
            vectors.push(Vector(BTreeMap::new()));
            continue;
        }
        let (key, value) = line.split_once(':').unwrap_or_else(|| panic!("no key in `{line}`"));
        let block = &mut vectors.last_mut().expect("one block at least").0;
        let before = block.insert(key.to_owned(), value.trim().to_owned());
        assert!(before.is_none(), "`{key}` twice in {block:?}");
    }
    vectors.retain(|vector| !vector.0.is_empty());
    vectors
}

#[test]
fn messages_decode_and_encode_in_both_orders() {
    for vector in vectors().iter().filter(|vector| vector.has("message")) {
        let name = vector.get("name");
        let json = vector.json("message");
        let (message, descriptors) = (json::message(&json), json::descriptors(&json));
        let both = vector.bytes();
        assert_eq!(both.len(), 2, "{name}: both byte orders");
        for (order, bytes) in both {
            let (frame, used) = Frame::parse(&bytes)
                .unwrap_or_else(|error| panic!("{name}: {error}"))
                .unwrap_or_else(|| panic!("{name}: not a whole frame"));
            assert_eq!(used, bytes.len(), "{name}: nothing behind the frame");
            assert_eq!(frame.header.order, order, "{name}: the order that it marks");
            assert_eq!(frame.header.descriptors, descriptors, "{name}");
            assert_eq!(Message::decode(&frame).as_ref(), Ok(&message), "{name}");

            let mut encoded = Vec::new();
            message.encode_with(descriptors, order, &mut encoded).expect(name);
            assert_eq!(encoded, bytes, "{name} in {order:?}");
        }
    }
}

#[test]
fn values_decode_and_encode_in_both_orders() {
    for vector in vectors().iter().filter(|vector| vector.has("values")) {
        let name = vector.get("name");
        let values = json::values(&vector.json("values"));
        let both = vector.bytes();
        assert_eq!(both.len(), 2, "{name}: both byte orders");
        for (order, bytes) in both {
            let mut encoded = Vec::new();
            encode_values(&values, order, &mut encoded).expect(name);
            assert_eq!(encoded, bytes, "{name} in {order:?}");

            let decoded = decode_values(&bytes, order).expect(name);
            assert!(same(&decoded, &values), "{name}: {decoded:?}");
        }
    }
}

/// Equality under which a NaN equals itself, if all its bits do.
fn same(left: &[Value], right: &[Value]) -> bool {
    left.len() == right.len()
        && left.iter().zip(right).all(|pair| match pair {
            (Value::Float(a), Value::Float(b)) => a.to_bits() == b.to_bits(),
            (a, b) => a == b,
        })
}

#[test]
fn invalid_inputs_give_the_expected_error() {
    for vector in vectors().iter().filter(|vector| vector.has("invalid")) {
        let name = vector.get("name");
        let inputs = vector.bytes();
        assert!(!inputs.is_empty(), "{name}: at least one byte order");
        for (order, bytes) in inputs {
            let result = match vector.get("invalid") {
                "frame" => match Frame::parse(&bytes) {
                    Ok(None) => {
                        assert_eq!(vector.get("error"), "incomplete", "{name} in {order:?}");
                        continue;
                    }
                    Ok(Some((frame, _))) => Message::decode(&frame).map(|_| ()),
                    Err(error) => Err(error),
                },
                "values" => decode_values(&bytes, order).map(|_| ()),
                other => panic!("{name}: invalid {other}"),
            };
            let error = result.expect_err(name);
            assert_eq!(class(&error), vector.get("error"), "{name} in {order:?}: {error}");
            let expected = vector.has("what").then(|| vector.get("what"));
            assert_eq!(field(&error), expected, "{name} in {order:?}: {error}");
        }
    }
}

/// The name of an error in the file.
fn class(error: &WireError) -> &'static str {
    match error {
        WireError::Magic(_) => "magic",
        WireError::Version(_) => "version",
        WireError::ByteOrder(_) => "byte-order",
        WireError::Kind(_) => "kind",
        WireError::Reserved(_) => "reserved",
        WireError::TooLarge { .. } => "too-large",
        WireError::Truncated(_) => "truncated",
        WireError::Trailing(_) => "trailing",
        WireError::Text(_) => "text",
        WireError::Meaningless { .. } => "meaningless",
    }
}

/// The field that an error is about, if it is about one.
fn field(error: &WireError) -> Option<&'static str> {
    match error {
        WireError::TooLarge { what, .. } | WireError::Meaningless { what, .. } => Some(what),
        WireError::Truncated(what) | WireError::Text(what) => Some(what),
        _ => None,
    }
}

/// The sections of a message, if it is of a kind that has any.
fn sections<'m>(message: &'m Message<'static>) -> &'m [Section<'static>] {
    match message {
        Message::Function { sections, .. }
        | Message::Call { sections, .. }
        | Message::Reply { sections, .. }
        | Message::Failure { sections, .. }
        | Message::Blob { sections, .. }
        | Message::Callback { sections, .. }
        | Message::CallbackReply { sections, .. }
        | Message::HostCall(HostCall { sections, .. })
        | Message::Output { sections, .. }
        | Message::Module { sections, .. } => sections,
        _ => &[],
    }
}

/// The code of a place.
fn place(place: Place<'_>) -> u8 {
    match place {
        Place::Inline(_) => 0,
        Place::Stream => 1,
        Place::Shared(_) => 2,
        Place::Blob { .. } => 3,
        Place::Argument(_) => 4,
        Place::Kept { .. } => 5,
    }
}

/// So that a new kind, form, place, element type or error cannot come without vectors.
#[test]
fn vectors_cover_the_format() {
    let vectors = vectors();
    let names: BTreeSet<&str> = vectors.iter().map(|vector| vector.get("name")).collect();
    assert_eq!(names.len(), vectors.len(), "every name is unique");

    let messages: Vec<_> = vectors
        .iter()
        .filter(|v| v.has("message"))
        .map(|v| json::message(&v.json("message")))
        .collect();
    for kind in Kind::ALL {
        assert!(messages.iter().any(|message| message.kind() == kind), "no vector of {kind:?}");
    }
    let forms: BTreeSet<u8> = messages
        .iter()
        .filter_map(|message| match message {
            Message::Function { form, .. } => Some(*form as u8),
            _ => None,
        })
        .collect();
    assert_eq!(forms, BTreeSet::from([0, 1, 2]), "vectors of every form of function");
    let places: BTreeSet<u8> =
        messages.iter().flat_map(sections).map(|section| place(section.place)).collect();
    assert_eq!(places, BTreeSet::from([0, 1, 2, 3, 4, 5]), "vectors of every place");

    let values: Vec<_> = vectors
        .iter()
        .filter(|v| v.has("values"))
        .flat_map(|v| json::values(&v.json("values")))
        .collect();
    for dtype in DType::ALL {
        let has = |value: &Value| matches!(value, Value::Array(array) if array.dtype == dtype);
        assert!(values.iter().any(has), "no vector of {}", dtype.name());
    }
    let errors: BTreeSet<&str> =
        vectors.iter().filter(|v| v.has("invalid")).map(|v| v.get("error")).collect();
    assert_eq!(errors.len(), 11, "all ten errors and `incomplete`: {errors:?}");
}
