//! The encoder refuses what no decoder would take, and then leaves the buffer as it was.

use gridrpc_wire::{
    Array, DType, Frame, FunctionForm, Lease, MAX_BODY, MAX_DESCRIPTORS, MAX_DIMENSIONS,
    MAX_SECTION_LEN, MAX_SECTIONS, MAX_TEXT, Message, Order, Place, Prepare, Section, Stamps,
    Value, WireError, data_header, encode_values,
};

/// The error of encoding `message`.
fn refused(message: &Message<'_>) -> WireError {
    let mut out = b"before".to_vec();
    let error = message.encode(Order::NATIVE, &mut out).expect_err("refused");
    assert_eq!(out, b"before");
    error
}

fn too_large(what: &'static str, value: u64, limit: u64) -> WireError {
    WireError::TooLarge { what, value, limit }
}

fn data(bytes: &[u8]) -> Message<'_> {
    Message::Data { stream: 7, bytes }
}

fn call(sections: Vec<Section<'_>>) -> Message<'_> {
    Message::Call { call: 1, function: 1, batch: false, sections }
}

#[test]
fn the_longest_body_is_a_frame_and_a_longer_one_is_not() {
    let bytes = vec![7; MAX_BODY + 1];
    let mut out = Vec::new();
    data(&bytes[1..]).encode(Order::NATIVE, &mut out).expect("the longest");
    let (frame, _) = Frame::parse(&out).expect("valid").expect("whole");
    assert_eq!(frame.body.len(), MAX_BODY);

    let (len, limit) = (bytes.len() as u64, MAX_BODY as u64);
    assert_eq!(refused(&data(&bytes)), too_large("body length", len, limit));
    assert_eq!(
        data_header(Order::NATIVE, 7, bytes.len()),
        Err(too_large("body length", len, limit))
    );
}

#[test]
fn the_header_of_data_is_the_one_that_its_message_gets() {
    for order in [Order::Little, Order::Big] {
        let mut out = Vec::new();
        data(b"abc").encode(order, &mut out).expect("short");
        assert_eq!(data_header(order, 7, 3).expect("short"), out[..16]);
    }
}

#[test]
fn too_many_descriptors() {
    let mut out = Vec::new();
    Message::Goodbye.encode_with(MAX_DESCRIPTORS, Order::NATIVE, &mut out).expect("the most");
    let before = out.clone();
    let error = Message::Goodbye.encode_with(MAX_DESCRIPTORS + 1, Order::NATIVE, &mut out);
    assert_eq!(error, Err(too_large("number of descriptors", 251, 250)));
    assert_eq!(out, before);
}

#[test]
fn too_many_sections_or_too_long_ones() {
    let stream = Section { len: MAX_SECTION_LEN, place: Place::Stream };
    let mut out = Vec::new();
    call(vec![stream; MAX_SECTIONS]).encode(Order::NATIVE, &mut out).expect("the most");

    let many = vec![stream; MAX_SECTIONS + 1];
    for message in [
        call(many.clone()),
        Message::Callback { call: 1, index: 0, sections: many.clone() },
        Message::CallbackReply { call: 1, sections: many },
    ] {
        assert_eq!(refused(&message), too_large("number of sections", 1025, 1024));
    }

    for place in [Place::Stream, Place::Argument(1), Place::Kept { call: 1, section: 1 }] {
        let long = Section { len: MAX_SECTION_LEN + 1, place };
        let error = refused(&call(vec![long]));
        assert_eq!(error, too_large("section length", MAX_SECTION_LEN + 1, MAX_SECTION_LEN));
    }
}

#[test]
fn an_inline_section_is_as_long_as_its_bytes() {
    for len in [0, 2, 4] {
        let error = refused(&call(vec![Section { len, place: Place::Inline(b"abc") }]));
        assert_eq!(error, WireError::Meaningless { what: "section length", value: len });
    }
}

#[test]
fn too_long_lists_and_texts() {
    let leases = vec![Lease { segment: 1, offset: 0 }; 65_536];
    let error = refused(&Message::Release { leases });
    assert_eq!(error, too_large("number of leases", 65_536, 65_535));

    let text = "x".repeat(MAX_BODY + 1);
    let function =
        |form| Message::Function { function: 1, form, name: &text, sections: Vec::new() };
    for message in [
        function(FunctionForm::Named),
        function(FunctionForm::Library),
        Message::Prepare(Prepare {
            directory: &text,
            path: Vec::new(),
            modules: Vec::new(),
            libraries: Vec::new(),
        }),
    ] {
        let error = refused(&message);
        assert_eq!(error, too_large("text length", text.len() as u64, MAX_BODY as u64));
    }
}

#[test]
fn values_out_of_bounds() {
    let array = |dimensions| {
        let shape = vec![1; dimensions];
        Value::Array(Array { dtype: DType::Int8, fortran: false, shape, section: 1 })
    };
    let cases = [
        (vec![Value::None; 65_536], too_large("number of values", 65_536, 65_535)),
        (vec![Value::Int(1), array(MAX_DIMENSIONS + 1)], too_large("number of dimensions", 33, 32)),
        (
            vec![Value::Int(1), Value::Text("x".repeat(MAX_BODY + 1))],
            too_large("text length", MAX_BODY as u64 + 1, MAX_BODY as u64),
        ),
    ];
    for (values, error) in cases {
        let mut out = b"before".to_vec();
        assert_eq!(encode_values(&values, Order::NATIVE, &mut out), Err(error));
        assert_eq!(out, b"before");
    }
}

#[test]
fn length_of_an_array() {
    let len = |dtype, shape: &[u64]| {
        Array { dtype, fortran: false, shape: shape.to_vec(), section: 1 }.byte_len()
    };
    assert_eq!(len(DType::Complex128, &[]), Some(16));
    assert_eq!(len(DType::Float32, &[3, 5]), Some(60));
    assert_eq!(len(DType::Int64, &[u64::MAX]), None);
    assert_eq!(len(DType::Int64, &[u64::MAX, u64::MAX, 0]), Some(0));
}

#[test]
fn elements_are_turned_word_by_word() {
    let foreign = Order::FOREIGN;
    let turned = |dtype: DType, order| {
        let mut elements: Vec<u8> = (0..18).collect();
        dtype.make_native(order, &mut elements);
        elements
    };
    let untouched: Vec<u8> = (0..18).collect();
    for dtype in DType::ALL {
        assert_eq!(turned(dtype, Order::NATIVE), untouched);
    }
    assert_eq!(turned(DType::Bool, foreign), untouched);
    assert_eq!(turned(DType::UInt16, foreign)[..4], [1, 0, 3, 2]);
    assert_eq!(turned(DType::Float32, foreign)[..8], [3, 2, 1, 0, 7, 6, 5, 4]);
    assert_eq!(turned(DType::Int64, foreign)[8..], [15, 14, 13, 12, 11, 10, 9, 8, 16, 17]);
    for dtype in DType::ALL {
        let mut twice = turned(dtype, foreign);
        dtype.swap_bytes(&mut twice);
        assert_eq!(twice, untouched);
    }
    // Each part of a complex number by itself, and a remainder stays as it is.
    assert_eq!(turned(DType::Complex64, foreign)[..8], [3, 2, 1, 0, 7, 6, 5, 4]);
    assert_eq!(turned(DType::Complex128, foreign)[7..], [0, 15, 14, 13, 12, 11, 10, 9, 8, 16, 17]);
}

#[test]
fn what_somebody_has_said_is_cut_and_keeps_no_message_from_being_sent() {
    // Two bytes a letter: one of them would be cut in two.
    let long = "é".repeat(MAX_BODY) + "x";
    let sent = |message: &Message<'_>, holds: &dyn Fn(&Message<'_>) -> bool| {
        let mut out = Vec::new();
        message.encode(Order::NATIVE, &mut out).expect("sent");
        let (frame, _) = Frame::parse(&out).expect("valid").expect("whole");
        assert!(holds(&Message::decode(&frame).expect("valid")), "{:?}", message.kind());
    };
    let is_end =
        |text: &str| (MAX_TEXT - 1..=MAX_TEXT).contains(&text.len()) && long.ends_with(text);
    sent(
        &Message::CallbackFailure { call: 1, message: &long },
        &|message| matches!(message, Message::CallbackFailure { message, .. } if is_end(message)),
    );
    sent(
        &Message::Started { worker: 1, pid: 0, passes: true, error: &long },
        &|message| matches!(message, Message::Started { error, .. } if is_end(error)),
    );
    let stamps = Stamps::default();
    let (retained, sections) = (Vec::new(), Vec::new());
    let (error, message, trace) = (&*long, &*long, &*long);
    sent(
        &Message::Failure { call: 1, stamps, retained, error, message, trace, sections },
        &|sent| {
            matches!(sent, Message::Failure { error, message, trace, .. }
            if is_end(error) && is_end(message) && is_end(trace))
        },
    );
    let function =
        |form| Message::Function { function: 1, form, name: &long, sections: Vec::new() };
    sent(
        &function(FunctionForm::Pickled),
        &|message| matches!(message, Message::Function { name, .. } if is_end(name)),
    );
}
