//! The error for a call that its server would refuse for a limit, before anything is sent.

use std::fmt;

use thiserror::Error;

/// A call that exceeds a limit of its server even without any other call.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{function}: the limit `{limit}` {} is reached: {}; nothing was sent to server `{server}`", self.whose(), self.amount())]
pub struct LimitExceeded {
    /// The function.
    pub function: String,
    /// The server.
    pub server: String,
    /// The user, as the server knows this client.
    pub user: String,
    /// The limit.
    pub limit: CallLimit,
    /// What the call needs.
    pub value: u64,
    /// The limit.
    pub allowed: u64,
}

/// A limit that one call can exceed, by its key in server.toml.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallLimit {
    /// Bytes of arguments that the server holds for the user.
    Bytes,
    /// Memory of a worker of the module.
    Memory,
    /// Workers that the user may use.
    Workers,
}

impl fmt::Display for CallLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CallLimit::Bytes => "bytes",
            CallLimit::Memory => "memory",
            CallLimit::Workers => "workers",
        })
    }
}

impl LimitExceeded {
    fn whose(&self) -> String {
        match self.limit {
            CallLimit::Memory => "of the module".to_owned(),
            CallLimit::Bytes | CallLimit::Workers => format!("of user {:?}", self.user),
        }
    }

    fn amount(&self) -> String {
        let LimitExceeded { value, allowed, .. } = self;
        match self.limit {
            CallLimit::Bytes => format!(
                "the arguments would have {value} bytes, and {allowed} may be held; this call alone exceeds it: send \
                 less in one call, or ask the server's owner for a higher limit"
            ),
            CallLimit::Memory => format!(
                "the work arrays of the call need {value} bytes, and a worker may have {allowed}; call it with smaller \
                 arrays, or ask the server's owner for a higher limit"
            ),
            CallLimit::Workers => format!(
                "each call takes {value} workers, and {allowed} may be in use; ask the server's owner for a higher \
                 limit"
            ),
        }
    }
}
