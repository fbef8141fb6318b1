//! Chunked calls: many items of a module's function in one call, as the worker receives them.

#[allow(dead_code)] // what one test file needs, another may not
mod support;

use gridrpc_client::{Grid, Outcome};
use gridrpc_wire::{Chunk, DType, Order, Value};

use support::{elements, function, open, outcome, send};

/// Calls a function with this many items, and these columns in sections 1 and up.
fn run(grid: &Grid, name: &str, chunk: Chunk, values: &[Value], columns: &[Vec<u8>]) -> Outcome {
    let mut payload = grid.payload();
    let mut bytes = Vec::new();
    chunk.encode(values, Order::NATIVE, &mut bytes).unwrap();
    payload.add(&bytes).unwrap();
    columns.iter().for_each(|column| payload.add(column).unwrap());
    outcome(&send(grid, &function(grid, name), payload.finish(), None))
}

fn chunk(items: u32) -> Chunk {
    Chunk { items, limit: 0 }
}

/// The result: the number of items that have run, the values, and the columns.
fn returned(outcome: Outcome) -> (u32, Vec<Value>, Vec<Vec<u8>>) {
    let Outcome::Returned(sections, _) = outcome else { panic!("{outcome:?}") };
    let (chunk, values) = Chunk::decode(sections[0].bytes(), Order::NATIVE).unwrap();
    assert_eq!(chunk.limit, 0);
    let columns = sections[1..].iter().map(|section| section.bytes().to_vec()).collect();
    (chunk.items, values, columns)
}

fn longs(values: &[i64]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_ne_bytes()).collect()
}

fn ints(values: &[i32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_ne_bytes()).collect()
}

#[test]
fn every_item_has_its_own_arguments_and_results() {
    let grid = open(1);
    let column = |count| elements(DType::Int64, count, 1);
    let numbers = run(&grid, "number", chunk(3), &[column(3), Value::None], &[longs(&[7, -8, 9])]);
    assert_eq!(returned(numbers), (3, vec![Value::None, column(3)], vec![longs(&[7, -8, 9])]));

    let given = [elements(DType::Int32, 4, 1), Value::None];
    let steps = run(&grid, "steps", chunk(4), &given, &[ints(&[2, 0, 3, 1])]);
    let made = elements(DType::Int32, 6, 1);
    assert_eq!(returned(steps), (4, vec![Value::None, made], vec![ints(&[0, 1, 0, 1, 2, 0])]));

    let floats = |values: &[f64]| -> Vec<u8> {
        values.iter().flat_map(|value| value.to_ne_bytes()).collect()
    };
    let given = [elements(DType::Int64, 3, 1), elements(DType::Float64, 3, 2)];
    let bumped = run(&grid, "bump", chunk(3), &given, &[longs(&[1, 0, 2]), floats(&[1., 2., 3.])]);
    let (done, values, columns) = returned(bumped);
    assert_eq!((done, columns), (3, vec![floats(&[2., 3., 4.])]));
    assert_eq!(values, [Value::None, elements(DType::Float64, 3, 1)]);

    let mut texts = longs(&[3]);
    texts.extend(b"one");
    texts.extend(longs(&[0]));
    let lengths = run(&grid, "length", chunk(2), &[Value::Bytes(1), Value::None], &[texts]);
    assert_eq!(returned(lengths), (2, vec![Value::None, column(2)], vec![longs(&[3, 0])]));
}

#[test]
fn no_item_is_begun_when_time_is_up() {
    let grid = open(1);
    let given = [elements(DType::Float64, 3, 1)];
    let seconds: Vec<u8> = [0.001_f64; 3].iter().flat_map(|value| value.to_ne_bytes()).collect();
    let late = run(&grid, "nap", Chunk { items: 3, limit: 1 }, &given, &[seconds]);
    assert_eq!(returned(late), (1, vec![Value::None], Vec::new()), "the first item is always run");
}

#[test]
fn an_item_that_fails_leaves_the_results_before_it() {
    let grid = open(1);
    let given = [elements(DType::Int32, 4, 1), Value::None];
    for (sizes, done, made) in [([2, 1, -1, 1], 2, vec![0, 1, 0]), ([-1, 1, 1, 1], 0, vec![])] {
        let (items, values, columns) =
            returned(run(&grid, "steps", chunk(4), &given, &[ints(&sizes)]));
        assert_eq!((items, columns), (done, vec![ints(&made)]));
        let [_, _, Value::Text(error), Value::Text(message)] = &values[..] else {
            panic!("{values:?}")
        };
        assert_eq!(error, "gridrpc.ArgumentError");
        assert!(message.contains("`made`") && message.contains("below 0"), "{message}");
    }
    // The elements after the first item are missing.
    let given = [elements(DType::Int64, 2, 1), elements(DType::Float64, 1, 2)];
    let columns = [longs(&[1, 1]), 1_f64.to_ne_bytes().to_vec()];
    let (items, values, _) = returned(run(&grid, "bump", chunk(2), &given, &columns));
    assert!(items == 1 && matches!(values[..], [_, _, Value::Text(_), Value::Text(_)]));
}

#[test]
fn an_item_without_memory_for_its_results_is_an_error() {
    let grid = open(1);
    let given = [elements(DType::Int64, 2, 1), Value::None];
    let columns = [longs(&[2, 1 << 50])];
    let (items, values, columns) = returned(run(&grid, "names", chunk(2), &given, &columns));
    assert_eq!((items, columns), (1, vec![longs(&[-1, -1])]), "two strings that are not there");
    let [_, Value::Bytes(1), Value::Text(error), _] = &values[..] else { panic!("{values:?}") };
    assert_eq!(error, "gridrpc.OutOfMemory");
}

#[test]
fn broken_chunks_are_errors() {
    let grid = open(1);
    let long = |count| elements(DType::Int64, count, 1);
    for (name, items, values, column) in [
        ("number", 2, vec![], longs(&[1, 2])),
        ("number", 2, vec![long(2)], longs(&[1, 2])),
        ("number", 2, vec![long(2), Value::None, Value::None], longs(&[1, 2])),
        ("number", 3, vec![long(2), Value::None], longs(&[1, 2])),
        ("number", u32::MAX, vec![long(2), Value::None], longs(&[1, 2])),
        ("number", 2, vec![long(2), Value::None], longs(&[1])),
        ("number", 1, vec![Value::Int(1), Value::None], Vec::new()),
        ("number", 2, vec![elements(DType::Int32, 2, 1), Value::None], longs(&[1])),
        ("number", 2, vec![elements(DType::Int64, 2, 9), Value::None], longs(&[1, 2])),
        ("length", 2, vec![Value::Bytes(1), Value::None], longs(&[1])),
        ("length", 2, vec![Value::Bytes(9), Value::None], longs(&[0, 0])),
        ("calls", 2, vec![Value::None], Vec::new()),
    ] {
        let ended = run(&grid, name, chunk(items), &values, &[column]);
        assert!(matches!(ended, Outcome::Raised { .. }), "{name} {items} {values:?}: {ended:?}");
    }
}
