//! A small process that outlives a client that is killed, and ends the client's jobs then.

use std::io::Write as _;
use std::path::Path;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::child::{Child, block_broken_pipe};

/// What it runs, in `sh`, behind a function `cancel` of the batch system's, which ends the jobs in `$jobs` and
/// those that are called `$name`. It is told of each job, and that all is done. If its input ends without
/// that, the client is gone, or could not end its jobs itself. What the client was submitting then may
/// become a job a moment later: so it asks twice. A batch system that does not answer is asked again, for some
/// ten minutes.
const WATCH: &str = r#"
trap '' HUP INT TERM
jobs=
while read -r word job; do
    case $word in
        job) jobs="$jobs $job" ;;
        done) exit 0 ;;
    esac
done
cancel
sleep 2
for pause in 1 2 5 10 30 60 60 60 60 60 60 60 60 60 0; do
    if cancel; then break; fi
    sleep "$pause"
done
rm -rf -- "$folder"
"#;

/// How long one that has nothing more to do may take to end.
const LEAVING: Duration = Duration::from_secs(1);

/// The watcher of a client's jobs.
#[derive(Debug)]
pub(crate) struct Watcher {
    child: Arc<Child>,
    stdin: ChildStdin,
}

impl Watcher {
    /// `cancelling`: the body of the function `cancel`. `name`: what all jobs are called. `folder`: what is
    /// to be removed when they are gone.
    pub(crate) fn start(cancelling: &str, name: &str, folder: &Path) -> std::io::Result<Watcher> {
        let script = format!("name=$1\nfolder=$2\ncancel() {{\n{cancelling}\n}}\n{WATCH}");
        let mut command = Command::new("sh");
        command.args(["-c", &script, "gridrpc-watcher", name]).arg(folder).current_dir("/");
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let (child, pipes) = Child::spawn(&mut command)?;
        let stdin = pipes.stdin.ok_or(std::io::ErrorKind::BrokenPipe)?;
        Ok(Watcher { child, stdin })
    }

    /// Tells it of a job.
    pub(super) fn knows(&mut self, job: &str) {
        self.say(&format!("job {job}\n"));
    }

    /// Nothing is left: it ends.
    pub(crate) fn done(mut self) {
        self.say("done\n");
        drop(self.stdin);
        let child = self.child;
        let waits = Arc::clone(&child);
        // Nobody else waits for it, and it may be slow where the machine is busy.
        let thread = std::thread::Builder::new().name("gridrpc-watcher".into());
        if thread.spawn(move || waits.wait()).is_ok() {
            child.ends_before(Instant::now() + LEAVING);
        }
    }

    fn say(&mut self, line: &str) {
        block_broken_pipe();
        // Somebody may have killed it.
        let _ = self.stdin.write_all(line.as_bytes());
    }
}
