//! Processes that are started, held where their program begins, and let go at an agreed instant.
//!
//! A task that is to start together with others must have nothing left to do at that instant but run: its
//! process exists, its program and libraries are loaded, and it waits at the program's entry (`entry`). There a
//! few instructions of ours (`stub`) wait for the instant, write down when they continued, and jump to the entry.
//! Nothing traces the process any more by then, and nobody has to act at the instant. Where a process cannot be
//! held there, it waits just before it executes the program (`Hold::Exec`), which then is part of its time.
//!
//! Waiting processes have a real-time priority where that is allowed, and lose it as soon as they have written
//! down that they began: else, with more tasks than processors, one would begin when another has ended.

mod entry;
mod error;
mod gate;
mod stub;
mod task;

pub use error::Error;
pub use task::{Ended, Hold, Program, Task, now, wait_for};
