//! Certificates of servers and users: reading them, revoking them, and connecting with them.

mod authority;
mod credentials;
mod crowds;
mod dialling;
mod handshakes;
mod revocations;
