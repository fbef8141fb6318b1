//! The threads of numerical libraries that are loaded already: what the environment says of their number
//! they read when they were loaded.

use std::collections::BTreeSet;
use std::ffi::{CStr, CString, OsString, c_int};

/// What tells numerical libraries how many threads to start: as many as there are processors, if nothing
/// does, in every worker.
pub const THREADS: [&str; 7] = [
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "POLARS_MAX_THREADS",
];
/// Those that follow `OMP_NUM_THREADS` where their own variable is not set.
const FOLLOW_OMP: [&str; 4] =
    ["OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "NUMEXPR_NUM_THREADS"];

/// Variables for workers, so that together they have no more threads than there are processors; those that
/// are set already stay.
#[must_use]
pub fn environment(processors: usize, workers: u32) -> Vec<(OsString, OsString)> {
    let share = (processors / workers.max(1) as usize).max(1).to_string();
    let is_set = |name| std::env::var_os(name).is_some();
    let omp = is_set("OMP_NUM_THREADS");
    let follows = |name| omp && FOLLOW_OMP.contains(name);
    let unset = THREADS.iter().filter(|name| !(is_set(name) || follows(name)));
    unset.map(|name| (OsString::from(name), OsString::from(&share))).collect()
}

/// Names that OpenBLAS has for the same two functions, by how it was built.
const OPENBLAS: [(&CStr, &CStr); 4] = [
    (c"scipy_openblas_get_num_threads64_", c"scipy_openblas_set_num_threads64_"),
    (c"scipy_openblas_get_num_threads", c"scipy_openblas_set_num_threads"),
    (c"openblas_get_num_threads64_", c"openblas_set_num_threads64_"),
    (c"openblas_get_num_threads", c"openblas_set_num_threads"),
];

type Get = unsafe extern "C" fn() -> c_int;
type Set = unsafe extern "C" fn(c_int);

/// The libraries of this process.
#[derive(Debug, Default)]
pub struct Libraries {
    blas: Vec<(Get, Set)>,
    openmp: Vec<(Get, Set)>,
    /// Whether there is one whose threads cannot be told, or do not survive a fork.
    others: bool,
}

impl Libraries {
    /// Looks for them.
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

    /// Whether the number of threads can be told to all of them.
    #[must_use]
    pub fn all_known(&self) -> bool {
        !self.others
    }

    /// Has OpenBLAS use so many threads, in this process and those that it forks. In a forked process
    /// this would start threads. Returns what undoes it.
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

    /// Has OpenMP use so many threads in what this thread calls; in processes forked by it too.
    pub fn limit_openmp(&self, threads: u32) {
        for (_, set) in &self.openmp {
            // SAFETY: it sets a number of the calling thread.
            unsafe { set(threads as c_int) };
        }
    }

    /// Has all of them use so many threads in what this thread calls. Returns what they had before.
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

/// What libraries had before their number of threads was changed.
#[derive(Debug)]
pub struct Restored {
    before: Vec<(Set, c_int)>,
}

impl Restored {
    /// Has them use as many again. Those that were loaded since use `usual`, if that is known.
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
    // SAFETY: with RTLD_NOLOAD nothing is loaded, and what is stays loaded: the handle is kept.
    unsafe {
        let handle = libc::dlopen(file.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD);
        if handle.is_null() {
            return None;
        }
        let found = libc::dlsym(handle, name.as_ptr());
        (!found.is_null()).then_some(found)
    }
}
