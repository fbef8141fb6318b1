//! Modules loaded by the spawner: forked workers have them before their first call.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use gridrpc_sys::threads;
use nix::errno::Errno;
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, fork};

use super::library::Library;

/// How long a thread that has ended may still be listed.
const ENDING: Duration = Duration::from_millis(20);

/// Libraries are never unloaded, so those of this process exist in every worker.
static LOADED: LazyLock<Mutex<HashMap<PathBuf, Arc<Library>>>> = LazyLock::new(Mutex::default);

fn lock() -> MutexGuard<'static, HashMap<PathBuf, Arc<Library>>> {
    LOADED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Libraries that this process has loaded, by file.
pub(super) fn loaded() -> HashMap<PathBuf, Arc<Library>> {
    lock().clone()
}

/// Loads a module. Only for a process that forks its workers. If the module has started threads, the process is
/// forked as a test.
///
/// # Errors
/// Why workers cannot use it, and what to do.
pub(crate) fn load(path: &Path) -> Result<(), String> {
    // A rejected module leaves its threads behind, and is rejected again next time.
    static OWN: OnceLock<usize> = OnceLock::new();
    let own = *OWN.get_or_init(|| {
        // Threads that end before this process forks do not count.
        if threads() > 1 {
            stops_threads(1);
        }
        threads()
    });
    let library = Library::load(path).map_err(|why| {
        format!("{why}; install there what the module needs, or take it out of `preload`")
    })?;
    if threads() > own && !stops_threads(own) {
        return Err(format!(
            "loading `{}` starts threads, which workers that are forked later would not have: take it \
             out of `preload`, and each worker loads it before its first call of it",
            path.display()
        ));
    }
    lock().insert(path.to_owned(), Arc::new(library));
    Ok(())
}

/// Whether at most this many threads are left when this process forks. Numerical libraries may start threads when
/// they are loaded. Those that support forks stop them first, and start new ones when needed.
fn stops_threads(most: usize) -> bool {
    // SAFETY: the child does nothing but end.
    match unsafe { fork() } {
        // SAFETY: nothing of this process is touched any more.
        Ok(ForkResult::Child) => unsafe { libc::_exit(0) },
        Ok(ForkResult::Parent { child }) => {
            while waitpid(child, None) == Err(Errno::EINTR) {}
            // A thread that has ended may still be listed for a moment.
            let until = Instant::now() + ENDING;
            while threads() > most && Instant::now() < until {
                std::thread::sleep(Duration::from_micros(200));
            }
            threads() <= most
        }
        Err(_) => false,
    }
}
