//! Real programs are held, let go and waited for.

use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use gridbench_held::{Ended, Error, Hold, Program, Task, now, wait_for};

const BOTH: [Hold; 2] = [Hold::Entry, Hold::Exec];
const SECOND: i64 = 1_000_000_000;

/// A folder of its own, which goes with it.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("held-{}-{number}", std::process::id()));
        fs::create_dir(&path).unwrap();
        Folder(path)
    }

    fn program(&self, path: impl Into<PathBuf>, arguments: &[&str]) -> Program {
        Program {
            path: path.into(),
            arguments: arguments.iter().map(Into::into).collect(),
            environment: vec![("A".into(), "of the task".into())],
            directory: self.0.clone(),
            output: File::create(self.0.join("out")).unwrap(),
            errors: File::create(self.0.join("err")).unwrap(),
        }
    }

    fn shell(&self, text: &str) -> Program {
        self.program("/bin/sh", &["-c", text])
    }

    fn file(&self, name: &str) -> String {
        fs::read_to_string(self.0.join(name)).unwrap()
    }

    fn script(&self, text: &str, mode: u32) -> PathBuf {
        let path = self.0.join("script");
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

/// Whether it has ended before `until`.
fn ends(task: &mut Task, until: i64) -> bool {
    wait_for(&mut [task], until).unwrap()
}

fn end_of(mut task: Task) -> Ended {
    assert!(ends(&mut task, i64::MAX));
    task.ended().unwrap().unwrap()
}

fn run(program: Program, hold: Hold) -> Ended {
    let task = Task::prepare(program, hold).unwrap();
    task.release(0);
    end_of(task)
}

#[test]
fn a_program_runs_as_ever() {
    for hold in BOTH {
        let folder = Folder::new();
        let text = r#"echo "$A $0 $1 $#"; pwd; echo no >&2; exit 3"#;
        let program = folder.program("/bin/sh", &["-c", text, "zero", "a b"]);
        let ended = run(program, hold);
        assert_eq!(ended.status, 3);
        let folder_named = folder.0.canonicalize().unwrap();
        assert_eq!(
            folder.file("out"),
            format!("of the task zero a b 1\n{}\n", folder_named.display())
        );
        assert_eq!(folder.file("err"), "no\n");
        assert!(ended.memory > 100_000 && ended.began.unwrap() < ended.ended);
    }
}

#[test]
fn nothing_is_done_before_the_instant() {
    for hold in BOTH {
        let folder = Folder::new();
        let mut task = Task::prepare(folder.shell("echo done"), hold).unwrap();
        assert!(!ends(&mut task, now() + SECOND / 10));
        let at = now() + SECOND / 5;
        task.release(at);
        assert!(!ends(&mut task, at - SECOND / 20));
        assert_eq!(folder.file("out"), "");
        let ended = end_of(task);
        assert!(ended.began.unwrap() >= at);
        assert_eq!(folder.file("out"), "done\n");
    }
}

#[test]
fn at_its_entry_libraries_are_loaded() {
    let folder = Folder::new();
    let task = Task::prepare(folder.shell("true"), Hold::Entry).unwrap();
    let maps = fs::read_to_string(format!("/proc/{}/maps", task.id())).unwrap();
    assert!(maps.contains("libc.so"), "{maps}");
    assert!(maps.contains("gridbench-gate"));
    let status = fs::read_to_string(format!("/proc/{}/status", task.id())).unwrap();
    assert!(status.contains("TracerPid:\t0"), "{status}");
    for file in fs::read_dir(format!("/proc/{}/fd", task.id())).unwrap() {
        let to = fs::read_link(file.unwrap().path()).unwrap();
        assert!(!to.to_string_lossy().contains("gridbench-gate"));
    }
}

#[test]
fn scripts_and_programs_with_threads_run() {
    for hold in BOTH {
        let folder = Folder::new();
        let script = folder.script("#!/bin/sh\necho $1 from $0\n", 0o755);
        assert_eq!(run(folder.program(&script, &["hello"]), hold).status, 0);
        assert_eq!(folder.file("out"), format!("hello from {}\n", script.display()));
        let many = std::env::current_exe().unwrap();
        let arguments = ["--test-threads", "4", "--exact", "is_run_by_others", "--nocapture"];
        assert_eq!(run(folder.program(many, &arguments), hold).status, 0);
        assert!(folder.file("out").contains("1 passed"));
    }
}

#[test]
fn is_run_by_others() {
    let threads: Vec<_> = (0..4).map(|number| std::thread::spawn(move || number)).collect();
    let sum: i32 = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
    assert_eq!(sum, 6);
}

#[test]
fn what_cannot_be_executed_is_reported() {
    let folder = Folder::new();
    let missing = Path::new("/no/such/program");
    let not_executable = folder.script("#!/bin/sh\n", 0o644);
    for path in [missing, &not_executable, &folder.0] {
        let error = Task::prepare(folder.program(path, &[]), Hold::Entry).unwrap_err();
        assert!(matches!(error, Error::Start(_)), "{error}");
        // Before its exec, the process waits first.
        let mut task = Task::prepare(folder.program(path, &[]), Hold::Exec).unwrap();
        task.release(0);
        assert!(ends(&mut task, i64::MAX));
        assert!(task.ended().unwrap().is_err());
    }
    let mut nowhere = folder.shell("true");
    nowhere.directory = "/no/such/folder".into();
    assert!(matches!(Task::prepare(nowhere, Hold::Exec), Err(Error::Start(_))));
}

#[test]
fn one_that_takes_too_long_is_killed_with_its_children() {
    for hold in BOTH {
        let folder = Folder::new();
        let mut task = Task::prepare(folder.shell("sleep 1000 & echo $!; wait"), hold).unwrap();
        task.release(0);
        while folder.file("out").is_empty() {
            assert!(!ends(&mut task, now() + SECOND / 100));
        }
        task.kill();
        assert_eq!(end_of(task).status, -9);
        let child = folder.file("out").trim().to_owned();
        let gone = || match fs::read_to_string(format!("/proc/{child}/stat")) {
            Ok(stat) => stat.contains(") Z "),
            Err(_) => true,
        };
        while !gone() {
            std::thread::yield_now();
        }
    }
}

#[test]
fn one_that_nobody_lets_go_ends_with_who_holds_it() {
    for hold in BOTH {
        let folder = Folder::new();
        let task = Task::prepare(folder.shell("true"), hold).unwrap();
        let id = task.id();
        drop(task);
        assert!(!Path::new(&format!("/proc/{id}")).exists());
        assert_eq!(folder.file("out"), "");
    }
}

#[test]
fn one_killed_while_it_waits_never_began() {
    for hold in BOTH {
        let folder = Folder::new();
        let mut task = Task::prepare(folder.shell("true"), hold).unwrap();
        task.kill();
        assert!(ends(&mut task, i64::MAX));
        // Who starts a process that never executes a program may reap it first.
        if let Some(Ok(ended)) = task.ended() {
            assert_eq!((ended.status, ended.began), (-9, None));
        }
    }
}

#[test]
fn a_task_has_no_other_priority_than_usual() {
    for hold in BOTH {
        let folder = Folder::new();
        let text = "cut -d' ' -f41 /proc/self/stat";
        assert_eq!(run(folder.shell(text), hold).status, 0);
        assert!(folder.file("out").starts_with("0\n"), "policy {}", folder.file("out"));
    }
}

#[test]
fn arguments_may_be_any_bytes() {
    use std::os::unix::ffi::OsStringExt;
    for hold in BOTH {
        let folder = Folder::new();
        let mut program = folder.program("/usr/bin/printf", &["%s"]);
        program.arguments.push(OsString::from_vec(vec![0xff, b'x']));
        assert_eq!(run(program, hold).status, 0);
        assert_eq!(fs::read(folder.0.join("out")).unwrap(), [0xff, b'x']);
    }
}

#[test]
fn the_ends_of_many_are_seen_as_they_come() {
    let folder = Folder::new();
    let mut tasks: Vec<Task> = (0..5)
        .map(|number| {
            let text = format!("sleep 0.{number}; exit {number}");
            Task::prepare(folder.shell(&text), Hold::Entry).unwrap()
        })
        .collect();
    let at = now();
    tasks.iter().for_each(|task| task.release(at));
    let mut all: Vec<&mut Task> = tasks.iter_mut().collect();
    assert!(wait_for(&mut all, i64::MAX).unwrap());
    for (task, number) in tasks.iter().zip(0..) {
        let ended = task.ended().unwrap().unwrap();
        assert_eq!(ended.status, number);
        assert!(ended.ended - at >= i64::from(number) * SECOND / 10);
    }
}

/// Where `users_hold_what_they_may` finds its programs, when a user runs it.
const PROGRAMS: &str = "HELD_TEST_PROGRAMS";

#[test]
fn what_a_user_may_not_hold_at_its_entry_is_reported() {
    // SAFETY: a plain system call.
    if unsafe { libc::geteuid() } != 0 {
        return; // only root can be somebody else
    }
    let folder = Folder::new();
    for (name, mode) in [("usual", 0o755), ("setuid", 0o4755), ("not-to-be-read", 0o711)] {
        let path = folder.0.join(name);
        fs::copy("/bin/true", &path).unwrap();
        fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
    }
    let own = folder.0.join("own");
    fs::create_dir(&own).unwrap();
    fs::set_permissions(&own, PermissionsExt::from_mode(0o777)).unwrap();
    // The user may not come to where this program lies.
    let ours = folder.0.join("tests");
    fs::copy(std::env::current_exe().unwrap(), &ours).unwrap();
    let ran = std::process::Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(&ours)
        .args(["--exact", "users_hold_what_they_may", "--nocapture"])
        .env(PROGRAMS, &folder.0)
        .env("TMPDIR", own)
        .output()
        .unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
}

#[test]
fn users_hold_what_they_may() {
    let Some(programs) = std::env::var_os(PROGRAMS).map(PathBuf::from) else { return };
    let folder = Folder::new();
    assert_eq!(run(folder.program(programs.join("usual"), &[]), Hold::Entry).status, 0);
    for name in ["setuid", "not-to-be-read"] {
        let path = programs.join(name);
        let refused = Task::prepare(folder.program(&path, &[]), Hold::Entry).unwrap_err();
        assert!(matches!(refused, Error::Entry(_)), "{refused}");
        assert_eq!(run(folder.program(&path, &[]), Hold::Exec).status, 0);
    }
}
