//! Calls that need the results of other calls: when those are there, they become part of the arguments.

use std::any::Any;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use gridrpc_core::{CallId, Time};

use crate::client::call::{Call, Missing};
use crate::client::grid::Common;
use crate::gathered::Table;
use crate::payload::Incoming;
use crate::sys::monotonic_ns;

/// A call whose result another one needs: its result is kept for that one, whoever else takes it.
#[derive(Debug)]
pub struct Hold(Arc<Call>);

impl Hold {
    /// None: its result has been taken already, and cannot be given again.
    #[must_use]
    pub fn new(call: &Arc<Call>) -> Option<Hold> {
        call.hold().then(|| Hold(Arc::clone(call)))
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.0.let_go();
    }
}

/// A call whose result is an argument of another.
pub struct Dependency {
    /// The call.
    pub call: Arc<Hold>,
    /// What the binding knows it by; dropped when the result has been passed on.
    pub owner: Box<dyn Any + Send + Sync>,
}

impl fmt::Debug for Dependency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.call.fmt(f)
    }
}

impl Dependency {
    /// Its name in the grid.
    pub(crate) fn id(&self) -> Option<CallId> {
        self.call.0.id()
    }
}

/// Why arguments cannot be put together.
enum Unready {
    /// This call has not returned.
    Failed(CallId),
    NoMemory(io::Error),
}

impl From<io::Error> for Unready {
    fn from(error: io::Error) -> Unready {
        Unready::NoMemory(error)
    }
}

/// How long a call that has ended may take to say so, each time it is asked.
const SOON: Duration = Duration::from_secs(1);

impl Common {
    /// Puts the arguments of calls together whose dependencies have ended, and has them sent.
    pub(crate) fn gather(&self, ready: Vec<(CallId, Arc<Call>)>) {
        if ready.is_empty() {
            return;
        }
        let put_together = |(id, call): (CallId, Arc<Call>)| (id, self.put_together(&call));
        let gathered: Vec<_> = ready.into_iter().map(put_together).collect();
        let mut state = self.lock();
        let now = Time(monotonic_ns());
        for (id, gathered) in gathered {
            state.drive(|core, out| match gathered {
                Ok(()) => core.gathered(now, id, out),
                Err(Unready::Failed(dependency)) => {
                    core.dependency_failed(now, id, dependency, out);
                }
                Err(Unready::NoMemory(error)) => {
                    core.not_gathered(now, id, error.to_string().into(), out);
                }
            });
        }
        self.finish(state);
    }

    fn put_together(&self, call: &Call) -> Result<(), Unready> {
        let mut results: Vec<Vec<Incoming>> = Vec::new();
        for (id, needed) in call.needs() {
            // The core knows of its end a little earlier than its callers.
            while !needed.0.wait(SOON) {}
            match needed.0.returned() {
                Ok(sections) => results.push(sections),
                Err(Missing) => return Err(Unready::Failed(id)),
            }
        }
        // None: the call was given up meanwhile.
        let Some(payload) = call.take_payload().and_then(Arc::into_inner) else { return Ok(()) };
        let mut payload = self.payload().go_on_with(payload);
        let counts: Vec<usize> = results.iter().map(Vec::len).collect();
        let mut table = Table::new(&counts);
        for result in &results {
            table.begin(result.len());
            for section in result {
                // The table is a section as well.
                if payload.room() > 1 && payload.passes_on(section) {
                    table.refer(payload.sections(), section.len());
                    payload.pass_on(section)?;
                } else {
                    table.pack(section.bytes());
                }
            }
        }
        payload.add_owned(table.finish())?;
        call.complete(payload.finish());
        Ok(())
    }
}
