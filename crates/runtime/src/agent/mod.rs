//! The agent: the process on another host that runs workers there for a client, which it dials.

mod ticket;

pub use ticket::{SECRET, Ticket, TicketError, TicketKeys};
