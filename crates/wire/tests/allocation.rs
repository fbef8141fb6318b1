//! How much decoding may allocate: never more than a small multiple of the bytes it is given.
//!
//! The bounds are those of docs/developers/wire-format.md. The worst inputs are lists of the items that
//! are shortest on the wire for their size in memory; each is tried whole, and with a count
//! that promises more than there is.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::hint::black_box;

use gridrpc_wire::{Frame, Kind, MAX_BODY, MAX_SECTIONS, Message, Order, VERSION, decode_values};
use proptest::prelude::*;

use crate::arbitrary;

/// Bytes allocated for a message, per byte of its body: an empty text takes 4 on the wire and
/// 16 as a `&str`. (A section takes 9 and 32, a lease 12 and 16, a worker 4 and 4.)
const PER_BODY_BYTE: usize = 4;
/// The same for values: *nothing* takes 1 byte on the wire, and every `Value` 32.
const PER_VALUE_BYTE: usize = 32;

thread_local! {
    /// Bytes that this thread has asked for. Of each thread, as tests run beside each other.
    static ALLOCATED: Cell<usize> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: everything is passed on to the system's allocator as it came. The counter is a
// constant without destructor, so that using it neither allocates nor can come too late.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATED.set(ALLOCATED.get() + layout.size());
        // SAFETY: the caller's promises are those that `System` needs.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: as above; `at` came from `System`.
        unsafe { System.dealloc(at, layout) }
    }
    // `realloc` and `alloc_zeroed` call `alloc`: what grows step by step is counted each time.
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// What `work` allocates, bytes, freed or not.
fn allocated<T>(work: impl FnOnce() -> T) -> usize {
    let before = ALLOCATED.get();
    black_box(work());
    ALLOCATED.get() - before
}

fn frame(kind: Kind, body: &[u8]) -> Vec<u8> {
    let mut frame = vec![b'G', b'R', VERSION, b'l', kind as u8, 0, 0, 0];
    frame.extend((body.len() as u32).to_le_bytes());
    frame.extend([0; 4]);
    frame.extend(body);
    frame
}

/// Decodes a frame around `body`; whether it is a message, and what that allocated.
fn decode(kind: Kind, body: &[u8]) -> (bool, usize) {
    let bytes = frame(kind, body);
    let mut valid = false;
    let allocated = allocated(|| {
        let (frame, _) = Frame::parse(&bytes).expect("a valid header").expect("a whole frame");
        let message = Message::decode(&frame);
        valid = message.is_ok();
        message
    });
    (valid, allocated)
}

/// `before`, then a list of `count` items that says it has `claimed`, then `after`.
fn body(before: usize, claimed: usize, count: usize, item: &[u8], after: usize) -> Vec<u8> {
    let mut body = vec![0; before];
    body.extend((claimed as u16).to_le_bytes());
    body.extend(item.repeat(count));
    body.extend(vec![0; after]);
    body
}

/// A list of one kind of items inside of a message.
struct List {
    kind: Kind,
    /// Length of the fields before its count and behind its last item, which are all zero.
    before: usize,
    after: usize,
    /// Its shortest item, and how many there may be.
    item: &'static [u8],
    most: usize,
}

const STREAM: &[u8] = &[1, 0, 0, 0, 0, 0, 0, 0, 0];
const MOST: usize = u16::MAX as usize;
/// The call's number and the stamps.
const OUTCOME: usize = 60;

const LISTS: [List; 20] = [
    List { kind: Kind::Function, before: 9, after: 0, item: STREAM, most: MAX_SECTIONS },
    List { kind: Kind::Call, before: 13, after: 0, item: STREAM, most: MAX_SECTIONS },
    List { kind: Kind::Blob, before: 8, after: 0, item: STREAM, most: MAX_SECTIONS },
    List { kind: Kind::Callback, before: 10, after: 0, item: STREAM, most: MAX_SECTIONS },
    List { kind: Kind::CallbackReply, before: 8, after: 0, item: STREAM, most: MAX_SECTIONS },
    List { kind: Kind::Reply, before: OUTCOME, after: 2, item: &[0; 12], most: MOST },
    List { kind: Kind::Failure, before: OUTCOME, after: 14, item: &[0; 12], most: MOST },
    List { kind: Kind::Release, before: 0, after: 0, item: &[0; 12], most: MOST },
    List { kind: Kind::Prepare, before: 4, after: 4, item: &[0; 4], most: MOST },
    List { kind: Kind::Prepare, before: 6, after: 2, item: &[0; 4], most: MOST },
    List { kind: Kind::Prepare, before: 8, after: 0, item: &[0; 4], most: MOST },
    List { kind: Kind::HostCall, before: 17, after: 2, item: &[0; 8], most: MOST },
    List { kind: Kind::Retract, before: 0, after: 0, item: &[0; 8], most: MOST },
    List { kind: Kind::Serve, before: 54, after: 16, item: &[0; 4], most: MOST },
    List { kind: Kind::Serve, before: 70, after: 0, item: &[0; 4], most: MOST },
    List { kind: Kind::Examine, before: 12, after: 0, item: &[0; 4], most: MOST },
    List { kind: Kind::Echo, before: 12, after: 0, item: STREAM, most: MAX_SECTIONS },
    List { kind: Kind::Echoed, before: 8, after: 0, item: STREAM, most: MAX_SECTIONS },
    List { kind: Kind::KeptResult, before: 8, after: 0, item: STREAM, most: MAX_SECTIONS },
    List { kind: Kind::Spawn, before: 0, after: 0, item: &[0; 4], most: MOST },
];

#[test]
fn long_lists_allocate_a_small_multiple() {
    for List { kind, before, after, item, most } in LISTS {
        for count in [0, 1, 7, 1000, most] {
            let body = body(before, count, count, item, after);
            let (valid, allocated) = decode(kind, &body);
            assert!(valid, "{kind:?} with {count} items");
            let bound = PER_BODY_BYTE * body.len();
            assert!(allocated <= bound, "{kind:?}, {count} items: {allocated} > {bound}");
        }
    }
}

#[test]
fn counts_that_lie_allocate_no_more() {
    for List { kind, before, after, item, most } in LISTS {
        for count in [0, 1, 7, 1000] {
            let body = body(before, most, count, item, after);
            let (valid, allocated) = decode(kind, &body);
            assert!(!valid, "{kind:?} with {count} items of {most}");
            let bound = PER_BODY_BYTE * body.len();
            assert!(allocated <= bound, "{kind:?}, {count} of {most}: {allocated} > {bound}");
        }
    }
}

/// So that the bounds are the true ones: a looser multiple could hide a growing list.
#[test]
fn the_multiples_are_tight() {
    let texts = body(8, MOST, MOST, &[0; 4], 0);
    let (_, taken) = decode(Kind::Prepare, &texts);
    assert!(taken > (PER_BODY_BYTE - 1) * texts.len(), "{taken} for {}", texts.len());

    let nothings = body(0, MOST, MOST, &[0], 0);
    let taken = allocated(|| decode_values(&nothings, Order::Little));
    assert!(taken > (PER_VALUE_BYTE - 1) * nothings.len(), "{taken} for {}", nothings.len());
}

#[test]
fn values_allocate_a_small_multiple() {
    let scalar_array = [5, 1, 0, 1, 0, 0, 0];
    let mut array = vec![5, 1, 0, 1, 0, 32, 0];
    array.extend([1; 32 * 8]);
    let items: [&[u8]; 6] = [
        &[0],
        &[1, 0, 0, 0, 0, 0, 0, 0, 0],
        &[3, 1, 0, 0, 0, b'a'],
        &[4, 1, 0],
        &scalar_array,
        &array,
    ];
    for item in items {
        for count in [0, 1, 7, 1000, MOST] {
            let bytes = body(0, count, count, item, 0);
            let taken = allocated(|| decode_values(&bytes, Order::Little).expect("valid"));
            let bound = PER_VALUE_BYTE * bytes.len();
            assert!(taken <= bound, "{count} of {item:?}: {taken} > {bound}");

            let lying = body(0, MOST, count.min(1000), item, 0);
            let taken = allocated(|| decode_values(&lying, Order::Little).expect_err("too few"));
            let bound = PER_VALUE_BYTE * lying.len();
            assert!(taken <= bound, "{count} of {item:?}, cut: {taken} > {bound}");
        }
    }
}

#[test]
fn texts_and_payloads_that_lie_allocate_nothing() {
    // A text of 4 GiB, a text of a whole frame, a section of 2^48 bytes, each with 2 bytes there.
    let text = |before: &[u8], len: u32| [before, &len.to_le_bytes(), b"ab"].concat();
    for len in [u32::MAX, MAX_BODY as u32] {
        assert_eq!(decode(Kind::Started, &text(&[0; 9], len)), (false, 0));
        assert_eq!(decode(Kind::CallbackFailure, &text(&[0; 8], len)), (false, 0));
    }
    let mut call = body(13, 1, 0, &[], 0);
    call.push(0);
    call.extend((1u64 << 48).to_le_bytes());
    call.extend(b"ab");
    let (valid, allocated) = decode(Kind::Call, &call);
    assert!(!valid && allocated <= PER_BODY_BYTE * call.len(), "{allocated}");
}

#[test]
fn headers_allocate_nothing() {
    let header = frame(Kind::Data, &[]);
    assert_eq!(allocated(|| Frame::parse(&header)), 0);
    let mut huge = header;
    huge[8..12].copy_from_slice(&u32::MAX.to_le_bytes());
    assert_eq!(allocated(|| Frame::parse(&huge)), 0);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_messages_allocate_a_small_multiple(
        message in arbitrary::message(),
        order in arbitrary::order(),
    ) {
        let mut bytes = Vec::new();
        message.encode(order, &mut bytes).unwrap();
        let (frame, _) = Frame::parse(&bytes).unwrap().unwrap();
        let taken = allocated(|| Message::decode(&frame));
        prop_assert!(taken <= PER_BODY_BYTE * frame.body.len(), "{taken} for {}", bytes.len());
    }

    #[test]
    fn random_bodies_allocate_a_small_multiple(
        kind in proptest::sample::select(Kind::ALL.to_vec()),
        body in proptest::collection::vec(any::<u8>(), 0..400),
    ) {
        let (_, taken) = decode(kind, &body);
        prop_assert!(taken <= PER_BODY_BYTE * body.len(), "{taken} for {}", body.len());
        let taken = allocated(|| decode_values(&body, Order::Big));
        prop_assert!(taken <= PER_VALUE_BYTE * body.len(), "{taken} for {}", body.len());
    }

    #[test]
    fn random_values_allocate_a_small_multiple(values in arbitrary::values()) {
        let mut bytes = Vec::new();
        gridrpc_wire::encode_values(&values, Order::Little, &mut bytes).unwrap();
        let taken = allocated(|| decode_values(&bytes, Order::Little));
        prop_assert!(taken <= PER_VALUE_BYTE * bytes.len(), "{taken} for {}", bytes.len());
    }
}
