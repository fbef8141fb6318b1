//! Thread counts of numerical libraries that are already loaded: they have read the environment variables when they
//! were loaded.

use std::collections::BTreeSet;
use std::ffi::{CStr, CString, OsString, c_int};

/// Environment variables with the number of threads of numerical libraries. Without them, each worker starts as many
/// as there are processors.
pub const THREADS: [&str; 7] = [
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "POLARS_MAX_THREADS",
];
/// Variables of libraries that follow `OMP_NUM_THREADS` if their own variable is not set.
const FOLLOW_OMP: [&str; 4] =
    ["OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "NUMEXPR_NUM_THREADS"];

/// Variables for workers, so that together they have no more threads than there are processors. Variables that are
/// already set stay.
#[must_use]
pub fn environment(processors: usize, workers: u32) -> Vec<(OsString, OsString)> {
    let share = (processors / workers.max(1) as usize).max(1).to_string();
    let is_set = |name| std::env::var_os(name).is_some();
    let omp = is_set("OMP_NUM_THREADS");
    let follows = |name| omp && FOLLOW_OMP.contains(name);
    let unset = THREADS.iter().filter(|name| !(is_set(name) || follows(name)));
    unset.map(|name| (OsString::from(name), OsString::from(&share))).collect()
}

/// Names of the same two OpenBLAS functions, by build variant.
const OPENBLAS: [(&CStr, &CStr); 4] = [
    (c"scipy_openblas_get_num_threads64_", c"scipy_openblas_set_num_threads64_"),
    (c"scipy_openblas_get_num_threads", c"scipy_openblas_set_num_threads"),
    (c"openblas_get_num_threads64_", c"openblas_set_num_threads64_"),
    (c"openblas_get_num_threads", c"openblas_set_num_threads"),
];

type Get = unsafe extern "C" fn() -> c_int;
type Set = unsafe extern "C" fn(c_int);

/// Numerical libraries of this process.
#[derive(Debug, Default)]
pub struct Libraries {
    blas: Vec<(Get, Set)>,
    openmp: Vec<(Get, Set)>,
    /// Whether there is one whose threads cannot be set, or do not survive a fork.
    others: bool,
}

impl Libraries {
    /// Finds the loaded libraries.
    #[must_use]
    pub fn loaded() -> Libraries {
        let mut found = Libraries::default();
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
        let files: BTreeSet<&str> =
            maps.lines().filter_map(|line| line.find('/').map(|at| &line[at..])).collect();
        for file in files {
            let name = file.rsplit('/').next().unwrap_or(file);
            if name.contains("openblas") {
                let functions = OPENBLAS.iter().find_map(|(get, set)| {
                    let (get, set) = (symbol(file, get)?, symbol(file, set)?);
                    // SAFETY: OpenBLAS documents these types for the functions of these names.
                    Some(unsafe {
                        (
                            std::mem::transmute::<*mut libc::c_void, Get>(get),
                            std::mem::transmute::<*mut libc::c_void, Set>(set),
                        )
                    })
                });
                found.others |= functions.is_none();
                found.blas.extend(functions);
            } else if name.starts_with("libgomp") || name.starts_with("libiomp") {
                let get = symbol(file, c"omp_get_max_threads");
                if let Some((get, set)) = get.zip(symbol(file, c"omp_set_num_threads")) {
                    // SAFETY: OpenMP defines these types for the functions of these names.
                    let functions = unsafe {
                        (
                            std::mem::transmute::<*mut libc::c_void, Get>(get),
                            std::mem::transmute::<*mut libc::c_void, Set>(set),
                        )
                    };
                    found.openmp.push(functions);
                }
            } else if name.contains("mkl_") || name.contains("libblis") {
                found.others = true;
            }
        }
        found
    }

    /// Whether the number of threads can be set for all of them.
    #[must_use]
    pub fn all_known(&self) -> bool {
        !self.others
    }

    /// Limits the threads of OpenBLAS in this process and its children by fork. In a forked process this would start
    /// threads. Returns a function that restores the old number.
    pub fn limit_blas(&self, threads: u32) -> impl FnOnce() + use<> {
        let mut before = Vec::with_capacity(self.blas.len());
        for (get, set) in &self.blas {
            // SAFETY: both may be called at any time by the only thread that uses the library.
            unsafe {
                before.push((*set, get()));
                set(threads as c_int);
            }
        }
        move || {
            for (set, threads) in before {
                // SAFETY: as above.
                unsafe { set(threads) };
            }
        }
    }

    /// Limits the threads of OpenMP for calls of this thread, and for processes forked by it.
    pub fn limit_openmp(&self, threads: u32) {
        for (_, set) in &self.openmp {
            // SAFETY: it sets a number of the calling thread.
            unsafe { set(threads as c_int) };
        }
    }

    /// Sets the threads of all libraries for calls of this thread. Returns the previous numbers.
    #[must_use]
    pub fn use_threads(&self, threads: u32) -> Restored {
        let mut before = Vec::new();
        for (get, set) in self.blas.iter().chain(&self.openmp) {
            // SAFETY: both may be called at any time by the only thread that uses the library.
            unsafe {
                before.push((*set, get()));
                set(threads as c_int);
            }
        }
        Restored { before }
    }
}

/// Previous thread counts of libraries.
#[derive(Debug)]
pub struct Restored {
    before: Vec<(Set, c_int)>,
}

impl Restored {
    /// Restores the previous counts. Libraries loaded since then use `usual`, if known.
    pub fn restore(self, usual: Option<u32>) {
        let now = Libraries::loaded();
        for (_, set) in now.blas.iter().chain(&now.openmp) {
            let known = self.before.iter().find(|(other, _)| std::ptr::fn_addr_eq(*other, *set));
            let threads = known.map(|(_, threads)| *threads);
            if let Some(threads) = threads.or(usual.map(|usual| usual as c_int)) {
                // SAFETY: as above.
                unsafe { set(threads) };
            }
        }
    }
}

fn symbol(file: &str, name: &CStr) -> Option<*mut libc::c_void> {
    let file = CString::new(file).ok()?;
    // SAFETY: with RTLD_NOLOAD nothing is loaded, and a loaded library stays: the handle is kept.
    unsafe {
        let handle = libc::dlopen(file.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD);
        if handle.is_null() {
            return None;
        }
        let found = libc::dlsym(handle, name.as_ptr());
        (!found.is_null()).then_some(found)
    }
}
