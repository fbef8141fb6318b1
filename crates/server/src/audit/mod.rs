//! Audit log: user, function, time and outcome of calls; never the data.
//!
//! [`AuditLog::record`] never waits: a thread writes the records. If it cannot, the server continues, and the log
//! has the number of missing records once writing works again.

mod log;
mod log_file;
mod record;
#[cfg(test)]
mod tests;

pub use log::{AuditError, AuditLog, AuditStatus};
pub(crate) use record::rfc3339;
pub use record::{AuditEvent, AuditRecord};
