//! Watcher: a small process that survives a killed client and cancels the client's jobs.

use std::io::Write as _;
use std::path::Path;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::child::{Child, block_broken_pipe};

/// The watcher's `sh` script. It follows the definition of a function `cancel` for the batch system, which
/// cancels the jobs in `$jobs` and those named `$name`; its arguments are the prefix of commands. The watcher reads each new job from standard input,
/// and a final line when all is done. If its input ends without that line, the client is gone or could not
/// cancel its jobs. A submission under way may become a job a moment later, so it cancels twice. It retries
/// for about ten minutes if the batch system does not answer.
const WATCH: &str = r#"
trap '' HUP INT TERM
jobs=
while read -r word job; do
    case $word in
        job) jobs="$jobs $job" ;;
        done) exit 0 ;;
    esac
done
cancel "$@"
sleep 2
for pause in 1 2 5 10 30 60 60 60 60 60 60 60 60 60 0; do
    if cancel "$@"; then break; fi
    sleep "$pause"
done
rm -rf -- "$folder"
"#;

/// How long a watcher with nothing left to do may take to exit.
const LEAVING: Duration = Duration::from_secs(1);

/// The watcher of a client's jobs.
#[derive(Debug)]
pub(crate) struct Watcher {
    child: Arc<Child>,
    stdin: ChildStdin,
}

impl Watcher {
    /// `cancelling`: the body of the function `cancel`. `name`: the name of all jobs. `folder`: the folder to
    /// remove once they are gone. `prefix`: the words before each command of `cancelling`.
    pub(crate) fn start(
        cancelling: &str,
        name: &str,
        folder: &Path,
        prefix: &[String],
    ) -> std::io::Result<Watcher> {
        let script = format!("name=$1\nfolder=$2\nshift 2\ncancel() {{\n{cancelling}\n}}\n{WATCH}");
        let mut command = Command::new("sh");
        command.args(["-c", &script, "gridrpc-watcher", name]).arg(folder).args(prefix);
        command.current_dir("/");
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let (child, pipes) = Child::spawn(&mut command)?;
        let stdin = pipes.stdin.ok_or(std::io::ErrorKind::BrokenPipe)?;
        Ok(Watcher { child, stdin })
    }

    /// Adds a job.
    pub(super) fn knows(&mut self, job: &str) {
        self.say(&format!("job {job}\n"));
    }

    /// Ends the watcher: nothing is left to cancel.
    pub(crate) fn done(mut self) {
        self.say("done\n");
        drop(self.stdin);
        let child = self.child;
        let waits = Arc::clone(&child);
        // Reap it in a thread: nobody else waits for it, and it may be slow on a busy machine.
        let thread = std::thread::Builder::new().name("gridrpc-watcher".into());
        if thread.spawn(move || waits.wait()).is_ok() {
            child.ends_before(Instant::now() + LEAVING);
        }
    }

    fn say(&mut self, line: &str) {
        block_broken_pipe();
        // It may have been killed.
        let _ = self.stdin.write_all(line.as_bytes());
    }
}
