//! Tests of sending halves that many threads push to.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use gridrpc_transport::{Unix, memory};
use gridrpc_wire::{Message, Place, Section};

use crate::buffers::Source;
use crate::{LinkError, Outbound, Push, Received, Receiver, Socket, Stream};

const THREADS: u64 = 4;
const EACH: u64 = 300;

fn pair_of_sockets() -> (Socket, Socket) {
    let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
    ours.set_nonblocking(true).unwrap();
    theirs.set_nonblocking(true).unwrap();
    (Arc::new(Unix(ours.into())), Arc::new(Unix(theirs.into())))
}

/// Pushes what belongs together: a segment with its descriptor, and a message with streams.
fn push_group(out: &Outbound, thread: u64, number: u64, file: &Arc<OwnedFd>) {
    let mut to = out.pushing();
    if number.is_multiple_of(7) {
        let segment = (thread * EACH + number) as u32;
        to.push_with(&Message::Segment { segment, len: 1 }, vec![Arc::clone(file)]).unwrap();
    }
    let lengths = if number.is_multiple_of(3) { vec![5, 2000] } else { Vec::new() };
    let stream = |len: &u64| Section { len: *len, place: Place::Stream };
    let sections = lengths.iter().map(stream).collect();
    to.push(&Message::Blob { blob: thread * EACH + number, sections }).unwrap();
    for len in lengths {
        to.push_stream(&Arc::new(Source::owned(vec![number as u8; len as usize]))).unwrap();
    }
}

#[test]
fn what_threads_push_together_stays_together_and_in_their_order() {
    let (ours, theirs) = pair_of_sockets();
    let out = Outbound::new(ours, Box::new(|_| {}));
    let file = Arc::new(gridrpc_sys::memory_file(c"test", 4096).unwrap());
    let done = AtomicBool::new(false);
    let mut receiver = Receiver::new(theirs, 1 << 30);
    let mut segments = 0;
    let mut last = vec![None; THREADS as usize];
    let mut announced = None;
    std::thread::scope(|scope| {
        let pushers = (0..THREADS).map(|thread| {
            let (out, file) = (&out, &file);
            scope.spawn(move || {
                for number in 0..EACH {
                    push_group(out, thread, number, file);
                    out.flush_if_open();
                }
            })
        });
        let pushers: Vec<_> = pushers.collect();
        // As the receiver of `watch` does, but always.
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                out.flush();
                std::thread::yield_now();
            }
        });
        let mut count = 0;
        let mut handle = |received: Received<'_>| -> Result<(), LinkError> {
            match received.message {
                Message::Segment { segment, .. } => {
                    assert_eq!(received.descriptors.len(), 1);
                    announced = Some(u64::from(segment));
                    segments += 1;
                }
                Message::Blob { blob, .. } => {
                    let (thread, number) = (blob / EACH, blob % EACH);
                    assert!(received.descriptors.is_empty());
                    assert_eq!(announced.take(), number.is_multiple_of(7).then_some(blob));
                    let before = last[thread as usize].replace(number);
                    assert_eq!(before, number.checked_sub(1), "in the order of its thread");
                    let streams: Vec<_> =
                        received.streams.into_iter().map(Stream::into_bytes).collect();
                    let expected = [vec![number as u8; 5], vec![number as u8; 2000]];
                    assert_eq!(streams, if number.is_multiple_of(3) { &expected[..] } else { &[] });
                    count += 1;
                }
                _ => panic!("another message"),
            }
            done.store(count == THREADS * EACH, Ordering::Relaxed);
            Ok(())
        };
        while !done.load(Ordering::Relaxed) {
            if receiver.fill().is_ok() {
                receiver.drain(&mut handle).unwrap();
            } else {
                std::thread::yield_now();
            }
        }
        pushers.into_iter().for_each(|pusher| pusher.join().unwrap());
    });
    assert_eq!(segments, THREADS * EACH.div_ceil(7));
    assert_eq!(out.waiting(), 0);
}

#[test]
fn while_the_socket_is_full_only_the_watcher_sends() {
    let (ours, theirs) = memory::pair_with_room(100).unwrap();
    let mut receiver = Receiver::new(Arc::new(theirs), 1 << 30);
    let notified = Arc::new(Mutex::new(Vec::new()));
    let watch = Arc::clone(&notified);
    let out =
        Outbound::new(Arc::new(ours), Box::new(move |blocked| watch.lock().unwrap().push(blocked)));
    for number in 0..20 {
        out.push(&Message::Ping { number }).unwrap();
        out.flush_if_open();
    }
    assert_eq!(*notified.lock().unwrap(), [true], "told once");
    let taken = AtomicUsize::new(0);
    let mut take = || {
        while receiver.fill().is_ok() {
            let handle = |received: Received<'_>| -> Result<(), LinkError> {
                let number = taken.fetch_add(1, Ordering::Relaxed) as u64;
                assert!(matches!(received.message, Message::Ping { number: one } if one == number));
                Ok(())
            };
            receiver.drain(handle).unwrap();
        }
    };
    take();
    let before = out.waiting();
    out.flush_if_open();
    assert_eq!(out.waiting(), before, "it is left to the watcher");
    while out.waiting() > 0 {
        out.flush();
        take();
    }
    assert_eq!(*notified.lock().unwrap(), [true, false]);
    assert_eq!(taken.into_inner(), 20);
    out.push(&Message::Ping { number: 20 }).unwrap();
    out.flush_if_open();
    assert_eq!(out.waiting(), 0, "it is open again");
}

#[test]
fn who_sends_much_has_its_turn_again_and_again() {
    let (ours, _theirs) = memory::pair_with_room(64 << 20).unwrap();
    let goes_on = Arc::new(AtomicBool::new(false));
    let notified = Arc::clone(&goes_on);
    let watch = move |more| notified.store(more, Ordering::Relaxed);
    let out = Outbound::new(Arc::new(ours), Box::new(watch));
    let stream = Arc::new(Source::owned(vec![1; 20 << 20]));
    let section = Section { len: stream.len() as u64, place: Place::Stream };
    let message = Message::Blob { blob: 1, sections: vec![section] };
    out.push_with(&message, [stream].into()).unwrap();
    for left in [12, 4, 0] {
        out.flush();
        assert_eq!(out.waiting() >> 20, left);
        assert_eq!(goes_on.load(Ordering::Relaxed), left > 0);
    }
}
