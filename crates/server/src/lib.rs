//! A server that many clients share: its configuration, and the roles and limits of users.

#![forbid(unsafe_code)]

pub mod config;
pub mod limits;
pub mod roles;
