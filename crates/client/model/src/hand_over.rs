//! The scenes: callers that wait for calls, a worker that answers them, and the grid's own thread.

use loom::model::Builder;
use loom::sync::Arc;
use loom::thread::{self, JoinHandle};

use crate::call::Call;
use crate::reactor_lock::ReactorLock;
use crate::sync::Time;
use crate::socket::{Reactor, Socket};

/// More find no more, and take long.
const PREEMPTIONS: usize = 3;

struct Grid {
    reactor_lock: Arc<ReactorLock<Reactor, Socket>>,
    socket: Arc<Socket>,
    calls: Arc<Vec<Call>>,
    thread: JoinHandle<()>,
}

impl Grid {
    fn open(calls: usize) -> Grid {
        Grid::open_with(calls, ReactorLock::serve)
    }

    /// `serve` runs in the grid's own thread.
    fn open_with(
        calls: usize,
        serve: impl FnOnce(&ReactorLock<Reactor, Socket>) + Send + 'static,
    ) -> Grid {
        let calls = Arc::new((0..calls).map(|_| Call::new()).collect::<Vec<_>>());
        let socket = Arc::new(Socket::new());
        let reactor = Reactor { socket: Arc::clone(&socket), calls: Arc::clone(&calls) };
        let reactor_lock = Arc::new(ReactorLock::new(Arc::clone(&socket), reactor));
        let server = Arc::clone(&reactor_lock);
        let thread = thread::spawn(move || serve(&server));
        Grid { reactor_lock, socket, calls, thread }
    }

    /// A thread that waits for these calls, one after the other.
    fn caller(&self, numbers: &'static [usize]) -> JoinHandle<()> {
        let (reactor_lock, calls) = (Arc::clone(&self.reactor_lock), Arc::clone(&self.calls));
        thread::spawn(move || {
            wait_for(&reactor_lock, &calls, numbers);
        })
    }

    /// A thread that answers these calls.
    fn worker(&self, numbers: &'static [usize]) -> JoinHandle<()> {
        let socket = Arc::clone(&self.socket);
        thread::spawn(move || numbers.iter().for_each(|&number| socket.answer(number)))
    }

    fn close(self) {
        self.socket.close();
        self.reactor_lock.call_back();
        self.thread.join().unwrap();
    }
}

/// Returns whether it slept while others read.
fn wait_for(reactor_lock: &ReactorLock<Reactor, Socket>, calls: &[Call], numbers: &[usize]) -> bool {
    let late = Time(u64::MAX);
    let mut slept = false;
    for &number in numbers {
        let call = &calls[number];
        let sleep = |_| {
            slept = true;
            call.sleep()
        };
        assert!(reactor_lock.wait(late, || call.done(), sleep, || false));
    }
    slept
}

fn in_all_orders(preemptions: usize, scene: impl Fn() + Sync + Send + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(scene);
}

#[test]
fn a_caller_that_waits_for_one_call_after_the_other() {
    in_all_orders(PREEMPTIONS, || {
        let grid = Grid::open(2);
        let worker = grid.worker(&[0, 1]);
        wait_for(&grid.reactor_lock, &grid.calls, &[0, 1]);
        worker.join().unwrap();
        grid.close();
    });
}

#[test]
fn two_callers_while_the_grid_s_thread_leads() {
    in_all_orders(PREEMPTIONS - 1, || {
        let grid = Grid::open(2);
        let other = grid.caller(&[1]);
        let worker = grid.worker(&[0, 1]);
        wait_for(&grid.reactor_lock, &grid.calls, &[0]);
        other.join().unwrap();
        worker.join().unwrap();
        grid.close();
    });
}

#[test]
fn one_of_two_callers_leads_for_the_other() {
    in_all_orders(PREEMPTIONS - 1, || {
        let grid = Grid::open(3);
        // The grid's thread answers the first call, and leaves the lock to the caller.
        grid.socket.wait_until_reading(true);
        grid.socket.answer(0);
        if wait_for(&grid.reactor_lock, &grid.calls, &[0]) {
            grid.socket.wait_until_reading(false);
        }
        let other = grid.caller(&[2]);
        let worker = grid.worker(&[1, 2]);
        wait_for(&grid.reactor_lock, &grid.calls, &[1]);
        other.join().unwrap();
        worker.join().unwrap();
        grid.close();
    });
}

#[test]
fn a_call_that_another_thread_ends() {
    in_all_orders(PREEMPTIONS, || {
        let grid = Grid::open(1);
        let (reactor_lock, calls) = (Arc::clone(&grid.reactor_lock), Arc::clone(&grid.calls));
        let canceller = thread::spawn(move || {
            calls[0].finish();
            reactor_lock.nudge();
        });
        wait_for(&grid.reactor_lock, &grid.calls, &[0]);
        canceller.join().unwrap();
        grid.close();
    });
}

#[test]
fn a_thread_that_rests_while_a_caller_leads() {
    in_all_orders(PREEMPTIONS - 1, || {
        let rested = Arc::new(Call::new());
        let has_rested = Arc::clone(&rested);
        let grid = Grid::open_with(2, move |reactor_lock| {
            reactor_lock.rest();
            has_rested.finish();
            reactor_lock.serve();
        });
        let worker = grid.worker(&[0, 1]);
        wait_for(&grid.reactor_lock, &grid.calls, &[0, 1]);
        worker.join().unwrap();
        // No caller leads any more.
        rested.sleep();
        grid.close();
    });
}

#[test]
fn a_call_that_nobody_waits_for_beside_a_caller_that_leads() {
    in_all_orders(PREEMPTIONS - 1, || {
        let grid = Grid::open(3);
        // The grid's thread answers the first call, and leaves the lock to the caller.
        grid.socket.wait_until_reading(true);
        grid.socket.answer(0);
        if wait_for(&grid.reactor_lock, &grid.calls, &[0]) {
            grid.socket.wait_until_reading(false);
        }
        let is_submitted = Arc::new(Call::new());
        let (reactor_lock, calls) = (Arc::clone(&grid.reactor_lock), Arc::clone(&grid.calls));
        let (socket, submitted) = (Arc::clone(&grid.socket), Arc::clone(&is_submitted));
        let other = thread::spawn(move || {
            submitted.finish();
            reactor_lock.ensure_leader();
            socket.answer(2);
            calls[2].sleep();
        });
        grid.socket.answer(1);
        let call = &grid.calls[1];
        let others = || is_submitted.done() && !grid.calls[2].done();
        let late = Time(u64::MAX);
        assert!(grid.reactor_lock.wait(late, || call.done(), |_| call.sleep(), others));
        other.join().unwrap();
        grid.close();
    });
}

#[test]
fn a_grid_that_is_closed_while_a_caller_waits() {
    in_all_orders(PREEMPTIONS, || {
        let grid = Grid::open(1);
        let waiting = grid.caller(&[0]);
        // As the real one: it ends all calls, then has the thread end.
        grid.calls[0].finish();
        grid.close();
        waiting.join().unwrap();
    });
}
