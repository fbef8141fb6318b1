//! How many threads numerical libraries use in calls that ask for several cores: as many as that. What such a
//! call has changed is put right when another one begins.

use std::ffi::OsString;

use gridrpc_sys::thread_limits::{Libraries, Restored, THREADS};

/// The number of threads in this worker.
#[derive(Debug, Default)]
pub(crate) struct Threads {
    /// What is set; 0: what the worker began with.
    number: u32,
    /// What libraries had before, and what the environment said.
    before: Option<(Restored, Vec<Option<OsString>>)>,
}

impl Threads {
    /// How many are set; 0: what the worker began with.
    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    /// Has all libraries use so many, also those that are loaded later; 0: what they had.
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
    // SAFETY: this thread runs between two calls, when no function of this process reads the environment in
    // another thread; such as libraries have started themselves wait for work.
    unsafe {
        match value {
            Some(value) => std::env::set_var(name, value),
            None => std::env::remove_var(name),
        }
    }
}
