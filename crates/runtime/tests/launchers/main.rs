//! Launchers, with real processes and stand-ins for agents.

mod by_ssh;
mod here;
mod support;
