//! The scenes of the outbox: a worker that lays out and sends, or dies anywhere, and a client that
//! takes what is there meanwhile and reads the rest when the worker is gone.

use loom::model::Builder;
use loom::sync::Arc;
use loom::sync::Mutex;
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;

use crate::outbox::{Memory, Outbox, Take, take, take_rest};

/// A box of few bytes, each of which loom may show too old.
struct Cells {
    word: AtomicU64,
    base: AtomicU64,
    bytes: Vec<AtomicU64>,
}

#[derive(Clone)]
struct Shared(Arc<Cells>);

impl Shared {
    fn new() -> Shared {
        let bytes = (0..4).map(|_| AtomicU64::new(0)).collect();
        Shared(Arc::new(Cells { word: AtomicU64::new(0), base: AtomicU64::new(0), bytes }))
    }
}

impl Memory for Shared {
    fn word(&self) -> &AtomicU64 {
        &self.0.word
    }

    fn base(&self) -> &AtomicU64 {
        &self.0.base
    }

    fn capacity(&self) -> usize {
        self.0.bytes.len()
    }

    fn write(&self, at: usize, bytes: &[u8]) {
        for (cell, byte) in self.0.bytes[at..].iter().zip(bytes) {
            cell.store(u64::from(*byte), Ordering::Relaxed);
        }
    }

    fn read(&self, at: usize, len: usize, out: &mut Vec<u8>) {
        out.extend(
            self.0.bytes[at..at + len].iter().map(|cell| cell.load(Ordering::Relaxed) as u8),
        );
    }
}

/// What has been sent and not been read.
type Socket = Arc<Mutex<Vec<u8>>>;

/// What the worker does, one step after the other.
#[derive(Clone, Copy)]
enum Step {
    /// It has said one more byte.
    Say,
    /// It lays out what it has not sent.
    LayOut,
    BeginSending,
    /// It sends one byte.
    Send,
    Empty,
}

use Step::{BeginSending, Empty, LayOut, Say, Send};

/// Two rounds: laid out in two pieces and sent, then another and sent.
const STEPS: [Step; 13] = [
    Say,
    LayOut,
    Say,
    LayOut,
    BeginSending,
    Send,
    Send,
    Empty,
    Say,
    LayOut,
    BeginSending,
    Send,
    Empty,
];

struct Worker {
    outbox: Outbox<Shared>,
    socket: Socket,
    /// Bytes said and not sent, and the number of those sent or taken.
    waiting: Vec<u8>,
    position: u64,
    said: u8,
}

impl Worker {
    fn step(&mut self, step: Step) {
        match step {
            Say => {
                self.said += 1;
                self.waiting.push(self.said);
            }
            LayOut => {
                let new = self.outbox.filled();
                self.outbox.put(self.position, &self.waiting[new..]);
            }
            BeginSending => {
                let taken = self.outbox.begin_sending();
                self.waiting.drain(..taken);
                self.position += taken as u64;
            }
            // Nothing is left if the client has taken all.
            Send if self.waiting.is_empty() => {}
            Send => {
                self.socket.lock().unwrap().push(self.waiting.remove(0));
                self.position += 1;
            }
            Empty => self.outbox.empty(),
        }
    }
}

struct Client {
    memory: Shared,
    socket: Socket,
    got: Vec<u8>,
}

impl Client {
    fn read(&mut self) {
        self.got.append(&mut self.socket.lock().unwrap());
    }

    fn collect(&mut self) {
        for _ in 0..2 {
            self.read();
            let received = self.got.len() as u64;
            if take(&self.memory, received, &mut self.got) != Take::Again {
                break;
            }
        }
    }
}

/// The worker dies after so many steps, while the client looks `looks` times; nothing that was laid out
/// is lost, and nothing comes twice or out of order.
fn scene(steps: usize, looks: usize) {
    let (memory, socket) = (Shared::new(), Socket::default());
    let mut client =
        Client { memory: memory.clone(), socket: Arc::clone(&socket), got: Vec::new() };
    let worker = thread::spawn(move || {
        let outbox = Outbox::new(memory);
        let mut worker = Worker { outbox, socket, waiting: Vec::new(), position: 0, said: 0 };
        STEPS[..steps].iter().for_each(|step| worker.step(*step));
    });
    for _ in 0..looks {
        client.collect();
    }
    worker.join().unwrap();
    client.read();
    let received = client.got.len() as u64;
    take_rest(&client.memory, received, &mut client.got);
    let laid_out = STEPS[..steps].iter().filter(|step| matches!(step, LayOut)).count();
    assert_eq!(client.got, Vec::from_iter(1..=laid_out as u8), "after {steps} steps");
}

#[test]
fn what_is_laid_out_comes_once_and_in_order_wherever_the_worker_dies() {
    for steps in 0..=STEPS.len() {
        let mut builder = Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(move || scene(steps, 1));
    }
}

#[test]
fn a_client_that_looks_again_and_again() {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(|| scene(STEPS.len(), 2));
}
