//! Launchers, with real processes and stand-ins for agents.

mod by_real_ssh;
mod by_ssh;
mod here;
mod support;
