//! A server that many clients share: its configuration, the roles and limits of users, and the audit log.

#![forbid(unsafe_code)]

pub mod audit;
pub mod config;
pub mod limits;
pub mod roles;
