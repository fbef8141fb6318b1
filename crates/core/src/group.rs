//! Host groups: executors that calls can be bound to.

use std::sync::Arc;

use crate::end::Loss;
use crate::ids::WorkerId;

/// Executors that calls can be bound to.
#[derive(Debug)]
pub(crate) struct HostGroup {
    pub(crate) name: Arc<str>,
    /// Whether the workers of this machine belong to it, except for reserved ones.
    pub(crate) here: bool,
    pub(crate) hosts: Vec<WorkerId>,
    /// The loss of its last executor, if all are given up.
    pub(crate) lost: Option<Arc<Loss>>,
}

impl HostGroup {
    /// The workers of this machine.
    pub(crate) fn here() -> HostGroup {
        HostGroup { name: "localhost".into(), here: true, hosts: Vec::new(), lost: None }
    }
}
