//! Number of threads of numerical libraries in multi-core calls: as many as the call's cores. The previous setting is
//! restored when another call starts.

use std::ffi::OsString;

use gridrpc_sys::thread_limits::{Libraries, Restored, THREADS};

/// The number of threads in this worker.
#[derive(Debug, Default)]
pub(crate) struct Threads {
    /// The current setting; 0: the worker's initial setting.
    number: u32,
    /// Previous settings of the libraries and of the environment.
    before: Option<(Restored, Vec<Option<OsString>>)>,
}

impl Threads {
    /// The current setting; 0: the worker's initial setting.
    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    /// Makes all libraries use this many threads, including those loaded later; 0: their previous setting.
    pub(crate) fn use_in_libraries(&mut self, number: u32) {
        self.number = number;
        if let Some((libraries, environment)) = self.before.take() {
            let usual =
                environment.first().and_then(|value| value.as_ref()?.to_str()?.parse().ok());
            libraries.restore(usual);
            for (name, value) in THREADS.iter().zip(environment) {
                set(name, value);
            }
        }
        if number > 0 {
            let environment = THREADS.iter().map(std::env::var_os).collect();
            for name in THREADS {
                set(name, Some(number.to_string().into()));
            }
            self.before = Some((Libraries::loaded().use_threads(number), environment));
        }
    }
}

fn set(name: &str, value: Option<OsString>) {
    // SAFETY: this thread runs between two calls, when no function of this process reads the environment in another
    // thread; threads that libraries have started wait for work.
    unsafe {
        match value {
            Some(value) => std::env::set_var(name, value),
            None => std::env::remove_var(name),
        }
    }
}
