//! Tests of both halves of a connection, over one in memory that holds as little as they want.

use std::collections::VecDeque;
use std::os::fd::{BorrowedFd, OwnedFd, RawFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};

use gridrpc_transport::{Transport, memory};
use gridrpc_wire::{Compression, Kind, Order, Place};

use super::*;
use crate::buffers::{Sink, Source};

const MANY: u64 = 1 << 30;

/// Bytes that differ wherever they lie.
fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|index| (index ^ (index >> 8) ^ (index >> 16)) as u8).collect()
}

fn blob(number: u64, lengths: &[usize]) -> Message<'static> {
    let section = |len: &usize| Section { len: *len as u64, place: Place::Stream };
    Message::Blob { blob: number, sections: lengths.iter().map(section).collect() }
}

fn push(sender: &mut Sender, number: u64, streams: &[Vec<u8>]) {
    let lengths: Vec<usize> = streams.iter().map(Vec::len).collect();
    sender.push(&blob(number, &lengths)).unwrap();
    for stream in streams {
        sender.push_stream(&Arc::new(Source::owned(stream.clone()))).unwrap();
    }
}

type Messages = Vec<(u64, Vec<Vec<u8>>)>;

/// Receives all available messages. `None`: nothing is.
fn take(receiver: &mut Receiver, come: &mut Messages) -> Option<usize> {
    let count = match receiver.fill() {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => return None,
        count => count.unwrap(),
    };
    let handle = |received: Received<'_>| -> Result<(), LinkError> {
        let Message::Blob { blob, .. } = received.message else { panic!("another message") };
        come.push((blob, received.streams.into_iter().map(Stream::into_bytes).collect()));
        Ok(())
    };
    receiver.drain(handle).unwrap();
    Some(count)
}

fn halves(room: usize) -> (Sender, Receiver) {
    let (ours, theirs) = memory::pair_with_room(room).unwrap();
    (Sender::new(Arc::new(ours)), Receiver::new(Arc::new(theirs), MANY))
}

#[test]
fn messages_with_streams_go_across_in_pieces_of_any_size() {
    let sent: Messages = vec![
        (1, vec![pattern(1), Vec::new(), pattern(70_001)]),
        (2, Vec::new()),
        (3, vec![pattern(65_536)]),
    ];
    for room in [1, 2, 3, 7, 13, 61, 1021, 65_537] {
        let (mut sender, mut receiver) = halves(room);
        sent.iter().for_each(|(number, streams)| push(&mut sender, *number, streams));
        let all = sender.waiting() as u64;
        let mut come = Vec::new();
        loop {
            let done = sender.flush().unwrap();
            while take(&mut receiver, &mut come).is_some() {}
            if done {
                break;
            }
        }
        assert_eq!(come, sent, "in pieces of {room} bytes");
        assert_eq!((sender.position(), receiver.position()), (all, all));
    }
}

#[test]
fn nothing_is_lost_while_the_connection_takes_nothing() {
    let (mut sender, mut receiver) = halves(100);
    let streams = [pattern(5_000)];
    push(&mut sender, 0, &streams);
    for number in 1..20 {
        assert!(!sender.flush().unwrap());
        push(&mut sender, number, &streams);
        assert_eq!(sender.position(), 100);
    }
    let mut come = Vec::new();
    while !sender.flush().unwrap() {
        while take(&mut receiver, &mut come).is_some() {}
    }
    while take(&mut receiver, &mut come).is_some() {}
    assert_eq!(come.len(), 20);
    assert!((0..).zip(&come).all(|(number, one)| one.0 == number && one.1 == streams));
    assert_eq!(sender.waiting(), 0);
}

/// Counts bytes received into a buffer instead of their destination.
#[derive(Debug)]
struct Counting {
    end: memory::Memory,
    buffered: AtomicUsize,
}

impl Transport for Counting {
    fn socket(&self) -> BorrowedFd<'_> {
        self.end.socket()
    }

    fn send(&self, bytes: &[u8], descriptors: &[RawFd]) -> io::Result<usize> {
        self.end.send(bytes, descriptors)
    }

    fn flush(&self) -> io::Result<bool> {
        self.end.flush()
    }

    fn receive(
        &self,
        buffer: &mut [u8],
        descriptors: &mut VecDeque<Option<OwnedFd>>,
    ) -> io::Result<usize> {
        let count = self.end.receive(buffer, descriptors)?;
        self.buffered.fetch_add(count, Ordering::Relaxed);
        Ok(count)
    }

    fn receive_into(&self, place: &mut [u8]) -> io::Result<usize> {
        self.end.receive_into(place)
    }

    fn receive_behind(&self, bytes: &mut Vec<u8>, limit: usize) -> io::Result<usize> {
        self.end.receive_behind(bytes, limit)
    }

    fn has_more(&self) -> bool {
        self.end.has_more()
    }
}

#[test]
fn of_all_pieces_but_the_first_only_the_headers_pass_the_buffer() {
    let (ours, theirs) = memory::pair_with_room(8 << 20).unwrap();
    let theirs = Arc::new(Counting { end: theirs, buffered: AtomicUsize::new(0) });
    let (mut sender, mut receiver) =
        (Sender::new(Arc::new(ours)), Receiver::new(Arc::clone(&theirs) as Socket, MANY));
    let stream = pattern(2_000_000);
    let mut frames = Vec::new();
    blob(1, &[stream.len()]).encode(Order::NATIVE, &mut frames).unwrap();
    sender.push_frames(&frames);
    sender.push_bulk(VecDeque::from([Arc::new(Source::owned(stream.clone()))]));
    assert!(sender.flush().unwrap());
    let mut come = Vec::new();
    while take(&mut receiver, &mut come).is_some() {}
    assert_eq!(come, [(1, vec![stream])]);
    let buffered = theirs.buffered.load(Ordering::Relaxed);
    assert!(buffered < (64 << 10) + 1000, "{buffered} bytes were copied once more");
}

#[test]
fn streams_that_have_a_place_come_there() {
    let (mut sender, mut receiver) = halves(1000);
    let mut memory = vec![0_u8; 3_000];
    let start = NonNull::new(memory.as_mut_ptr()).unwrap();
    // SAFETY: `memory` outlives the receiver's use of the sink, and is looked at after that.
    let sink = Arc::new(unsafe { Sink::new(start, 3_000) });
    let place = Arc::clone(&sink);
    receiver.place_streams(Box::new(move |_, lengths| {
        assert_eq!(lengths, [10, 3_000]);
        vec![None, Some(Arc::clone(&place))]
    }));
    push(&mut sender, 1, &[pattern(10), pattern(3_000)]);
    let mut come = Vec::new();
    while !sender.flush().unwrap() {
        while take(&mut receiver, &mut come).is_some() {}
    }
    while take(&mut receiver, &mut come).is_some() {}
    sink.close();
    assert_eq!(come, [(1, vec![pattern(10), Vec::new()])]);
    assert_eq!(memory, pattern(3_000));
}

#[test]
fn payloads_above_the_limit_are_dropped_and_the_next_message_arrives() {
    let (mut sender, mut receiver) = halves(1000);
    receiver.limit_payload(2_000);
    receiver.drop_payloads(4_000);
    push(&mut sender, 1, &[pattern(1_500), pattern(1_500)]);
    push(&mut sender, 2, &[pattern(2_000)]);
    let mut come = Vec::new();
    while !sender.flush().unwrap() {
        while take(&mut receiver, &mut come).is_some() {}
    }
    while take(&mut receiver, &mut come).is_some() {}
    assert_eq!(come, [(1, vec![Vec::new(), Vec::new()]), (2, vec![pattern(2_000)])]);
}

#[test]
fn streams_that_are_held_go_when_they_are_to_and_in_their_order() {
    let (mut sender, mut receiver) = halves(1 << 20);
    let mut hold = |number, stream: Vec<u8>| {
        let mut frame = Vec::new();
        blob(number, &[stream.len()]).encode(Order::NATIVE, &mut frame).unwrap();
        sender.push_frames(&frame);
        sender.push_held([Arc::new(Source::owned(stream))].into());
    };
    hold(1, pattern(1000));
    hold(2, pattern(2000));
    push(&mut sender, 3, &[pattern(10)]);
    let mut come = Vec::new();
    for (count, expected) in [(0, vec![3]), (1, vec![3, 1]), (9, vec![3, 1, 2])] {
        sender.begin_held(count);
        assert!(sender.flush().unwrap());
        while take(&mut receiver, &mut come).is_some() {}
        assert_eq!(come.iter().map(|one| one.0).collect::<Vec<_>>(), expected);
    }
    assert_eq!(come[2].1, [pattern(2000)]);
}

/// Takes bytes at once and keeps them until it is allowed to send them, as encrypted ones are kept.
#[derive(Debug)]
struct BufferingTransport {
    inner: memory::Memory,
    pending_bytes: std::sync::Mutex<(bool, Vec<u8>)>,
}

impl Transport for BufferingTransport {
    fn socket(&self) -> BorrowedFd<'_> {
        self.inner.socket()
    }
    fn send(&self, bytes: &[u8], _: &[i32]) -> io::Result<usize> {
        self.pending_bytes.lock().unwrap().1.extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&self) -> io::Result<bool> {
        let mut pending_bytes = self.pending_bytes.lock().unwrap();
        if pending_bytes.0 {
            let sent = self.inner.send(&pending_bytes.1, &[])?;
            pending_bytes.1.drain(..sent);
        }
        Ok(pending_bytes.1.is_empty())
    }
    fn receive(&self, _: &mut [u8], _: &mut VecDeque<Option<OwnedFd>>) -> io::Result<usize> {
        Ok(0)
    }
    fn receive_into(&self, _: &mut [u8]) -> io::Result<usize> {
        Ok(0)
    }
    fn receive_behind(&self, _: &mut Vec<u8>, _: usize) -> io::Result<usize> {
        Ok(0)
    }
    fn has_more(&self) -> bool {
        false
    }
}

#[test]
fn what_the_transport_keeps_is_not_sent_yet() {
    let (inner, theirs) = memory::pair().unwrap();
    let keeping = Arc::new(BufferingTransport { inner, pending_bytes: Default::default() });
    let mut sender = Sender::new(Arc::clone(&keeping) as Socket);
    let mut receiver = Receiver::new(Arc::new(theirs), MANY);
    push(&mut sender, 1, &[]);
    assert!(!sender.flush().unwrap());
    keeping.pending_bytes.lock().unwrap().0 = true;
    assert!(sender.flush().unwrap());
    let mut come = Vec::new();
    take(&mut receiver, &mut come);
    assert_eq!(come, [(1, Vec::new())]);
}

/// What a receiver hands over: kinds of messages, and their streams.
fn received(receiver: &mut Receiver) -> Vec<(Kind, Vec<Vec<u8>>)> {
    let mut all = Vec::new();
    let handle = |received: Received<'_>| -> Result<(), LinkError> {
        let streams = received.streams.into_iter().map(Stream::into_bytes).collect();
        all.push((received.message.kind(), streams));
        Ok(())
    };
    receiver.drain(handle).expect("messages");
    all
}

#[test]
fn small_messages_pass_long_streams_and_streams_take_turns() {
    for mode in [Compression::Off, Compression::On] {
        let (ours, theirs) = memory::pair_with_room(1 << 20).expect("a pair");
        let mut sender = Sender::new(Arc::new(ours));
        sender.compress(mode);
        let mut receiver = Receiver::new(Arc::new(theirs), 1 << 40);
        let long: Vec<u8> = (0..3_000_001_u32).map(|i| (i / 7) as u8).collect();
        let short = vec![5; 600_000];
        for (number, bytes) in [(1, &long), (2, &short)] {
            let mut frame = Vec::new();
            blob(number, &[bytes.len()]).encode(Order::NATIVE, &mut frame).expect("encoded");
            sender.push_frames(&frame);
            sender.push_bulk([Arc::new(Source::owned(bytes.clone()))].into());
        }
        sender.push(&Message::Ping { number: 7 }).expect("pushed");
        let mut all = Vec::new();
        while all.len() < 3 {
            sender.flush().expect("sent");
            while receiver.fill().is_ok() {
                all.extend(received(&mut receiver));
            }
        }
        let kinds: Vec<Kind> = all.iter().map(|(kind, _)| *kind).collect();
        assert_eq!(kinds, [Kind::Ping, Kind::Blob, Kind::Blob], "{mode:?}");
        assert!(
            all[1].1 == [short] && all[2].1 == [long],
            "{mode:?}: the short one is there first"
        );
    }
}

#[test]
fn data_for_a_message_that_nobody_sent_ends_the_connection() {
    for message in [
        Message::Data { stream: 2, bytes: b"abc" },
        Message::Packed { stream: 1, bytes: b"no frame of zstd" },
        Message::Packed { stream: 9, bytes: b"" },
    ] {
        let (ours, theirs) = memory::pair().expect("a pair");
        let mut sender = Sender::new(Arc::new(ours));
        sender.push(&blob(1, &[100])).expect("pushed");
        sender.push(&message).expect("pushed");
        sender.flush().expect("sent");
        let mut receiver = Receiver::new(Arc::new(theirs), 1 << 40);
        receiver.fill().expect("received");
        let handle = |_: Received<'_>| -> Result<(), LinkError> { Ok(()) };
        assert!(receiver.drain(handle).is_err(), "{message:?}");
    }
}

#[test]
fn descriptors_that_no_message_announces_end_the_connection() {
    let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
    let (ours, theirs) =
        (gridrpc_transport::Unix(ours.into()), gridrpc_transport::Unix(theirs.into()));
    let mut receiver = Receiver::new(Arc::new(theirs), MANY);
    let mut frame = Vec::new();
    Message::Ping { number: 7 }.encode(Order::NATIVE, &mut frame).unwrap();
    let file = std::fs::File::open("/dev/null").unwrap();
    ours.send(&frame, &[std::os::fd::AsRawFd::as_raw_fd(&file)]).unwrap();
    receiver.fill().unwrap();
    let mut kinds = Vec::new();
    let handle = |received: Received<'_>| -> Result<(), LinkError> {
        kinds.push(received.message.kind());
        Ok(())
    };
    receiver.drain(handle).unwrap();
    assert_eq!(kinds, [Kind::Ping]);
    assert_eq!(receiver.fill().unwrap_err().kind(), io::ErrorKind::InvalidData);
}

#[test]
fn streams_of_moderate_length_arrive_one_after_the_other() {
    let (mut sender, mut receiver) = halves(64 << 10);
    let results: Vec<Vec<u8>> = (0..4).map(|number| pattern(700_000 + number)).collect();
    for (number, bytes) in (1..).zip(&results) {
        let mut frame = Vec::new();
        blob(number, &[bytes.len()]).encode(Order::NATIVE, &mut frame).unwrap();
        sender.push_frames(&frame);
        sender.push_bulk([Arc::new(Source::owned(bytes.clone()))].into());
    }
    let (mut come, mut lengths) = (Vec::new(), Vec::new());
    while come.len() < 4 {
        sender.flush().unwrap();
        while take(&mut receiver, &mut come).is_some() {}
        let bytes = receiver.position() as usize;
        if come.len() > lengths.len() {
            lengths.push(bytes);
        }
    }
    // Each is complete when little more than its share of all bytes has arrived.
    for (number, bytes) in (1..).zip(lengths) {
        assert!(bytes < number * 701_000 + (70 << 10), "{number}: {bytes}");
    }
    assert!(come.iter().zip(&results).all(|(one, sent)| one.1 == [sent.clone()]));
}
