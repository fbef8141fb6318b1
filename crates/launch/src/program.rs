//! Launcher that runs the user's own program, with the line protocol of docs/launchers.md.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use gridrpc_sys::lock;

use super::child::{Child, Pipes, block_broken_pipe, how};
use super::lines::{Lines, text};
use super::program_protocol::{HELLO, Protocol};
use crate::launcher::{Event, Launcher, Report, Start};

/// How long to wait for the rest of an ended program's output: a process that it left behind may hold its
/// pipes open.
const REST: Duration = Duration::from_millis(500);
/// How long a program may take to exit after it closes standard output.
const LEAVING: Duration = Duration::from_secs(1);
/// How many of its last lines on standard error are kept for messages.
const KEPT: usize = 5;

/// Launcher that delegates to a program. The program starts with the first agent, and again if it has ended.
#[derive(Debug)]
pub(super) struct Program {
    command: Arc<[String]>,
    stop_timeout: Duration,
    report: Report,
    running: Option<RunningProgram>,
}

/// One run of the program.
#[derive(Debug)]
struct RunningProgram {
    conversation: Arc<Protocol>,
    /// Lines to send.
    lines: Sender<String>,
    process: Arc<Mutex<Option<Arc<Child>>>>,
    /// Disconnects when its end has been reported.
    all: Receiver<()>,
}

impl Program {
    pub(super) fn new(command: &[String], stop_timeout: Duration, report: Report) -> Program {
        Program { command: command.into(), stop_timeout, report, running: None }
    }

    fn begin(&self) -> std::io::Result<RunningProgram> {
        let name = self.command.first().cloned().unwrap_or_default();
        let conversation = Arc::new(Protocol::new(name, self.report.clone()));
        let ((lines, to_say), (done, all)) = (mpsc::channel(), mpsc::channel());
        let _ = lines.send(format!("{HELLO}\n"));
        let process = Arc::default();
        let (command, its) = (Arc::clone(&self.command), Arc::clone(&conversation));
        let shared = Arc::clone(&process);
        std::thread::Builder::new().name("gridrpc-launcher".into()).spawn(move || {
            serve(&command, &its, to_say, &shared);
            drop(done);
        })?;
        Ok(RunningProgram { conversation, lines, process, all })
    }
}

impl Launcher for Program {
    fn start(&mut self, starts: Vec<Start>) {
        let running = self.running.take().filter(|running| !running.conversation.is_over());
        let running = match running.map_or_else(|| self.begin(), Ok) {
            Ok(running) => running,
            Err(error) => {
                let why = format!("no thread could be started for the launcher: {error}");
                for start in starts {
                    self.report.notify(start.agent, Event::Failed(why.clone()));
                }
                return;
            }
        };
        for start in starts {
            if let Some(line) = running.conversation.ask(&start) {
                // Without a reader the program has ended, which is reported for each agent.
                let _ = running.lines.send(line);
            }
        }
        self.running = Some(running);
    }

    fn stop(&mut self, agent: u32) {
        if let Some(running) = &self.running {
            let _ = running.lines.send(format!("stop {agent}\n"));
        }
    }

    fn close(&mut self) {
        let Some(running) = self.running.take() else { return };
        let until = Instant::now() + self.stop_timeout;
        let _ = running.lines.send("end\n".to_owned());
        drop(running.lines);
        // Wait for the channel to disconnect.
        if running.all.recv_timeout(self.stop_timeout) == Err(mpsc::RecvTimeoutError::Timeout) {
            if let Some(child) = lock(&running.process).clone() {
                child.ask();
                if !child.ends_before(until + LEAVING) {
                    child.kill();
                }
            }
            let _ = running.all.recv_timeout(LEAVING);
        }
    }
}

/// Runs the program until it ends.
fn serve(
    command: &[String],
    conversation: &Arc<Protocol>,
    to_say: Receiver<String>,
    process: &Mutex<Option<Arc<Child>>>,
) {
    let Some((name, arguments)) = command.split_first() else {
        return conversation.end("no command is named for the launcher");
    };
    let mut to_run = Command::new(name);
    to_run.args(arguments);
    to_run.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let (child, pipes) = match Child::spawn(&mut to_run) {
        Ok(spawned) => spawned,
        Err(error) => {
            return conversation.end(&format!(
                "the launcher `{name}` could not be started: {error}; see that it is there and \
                 may be run"
            ));
        }
    };
    *lock(process) = Some(Arc::clone(&child));
    let last = Arc::new(Mutex::new(VecDeque::new()));
    let heard = listen(&child, pipes, conversation, to_say, &last);
    let status = child.wait();
    let _ = heard.recv_timeout(REST);
    let mut why = format!("the launcher `{name}` has ended ({})", how(status));
    for (number, line) in lock(&last).iter().enumerate() {
        why.push_str(if number == 0 { ": " } else { " | " });
        why.push_str(line);
    }
    conversation.end(&why);
}

/// Starts the threads that exchange lines with the program. The receiver disconnects when its output ends.
fn listen(
    child: &Arc<Child>,
    pipes: Pipes,
    conversation: &Arc<Protocol>,
    to_say: Receiver<String>,
    last: &Arc<Mutex<VecDeque<String>>>,
) -> Receiver<()> {
    let (done, all) = mpsc::channel::<()>();
    let mut started = true;
    let mut thread = |name: &str, run: Box<dyn FnOnce() + Send>| {
        let thread = std::thread::Builder::new().name(name.to_owned());
        started &= thread.spawn(run).is_ok();
    };
    if let Some(mut stdin) = pipes.stdin {
        thread(
            "gridrpc-tells",
            Box::new(move || {
                block_broken_pipe();
                // Ends with that process; the program then sees its standard input end.
                for line in to_say {
                    if stdin.write_all(line.as_bytes()).is_err() {
                        break;
                    }
                }
            }),
        );
    }
    if let Some(stdout) = pipes.stdout {
        let (child, conversation) = (Arc::clone(child), Arc::clone(conversation));
        let done = done.clone();
        thread(
            "gridrpc-hears",
            Box::new(move || {
                each_line(stdout, |line| conversation.handle_line(&text(line)));
                drop(done);
                // A program that has closed its output is of no use.
                if !child.ends_before(Instant::now() + LEAVING) {
                    child.end_soon(Duration::ZERO, LEAVING);
                }
            }),
        );
    }
    if let Some(stderr) = pipes.stderr {
        let (conversation, last) = (Arc::clone(conversation), Arc::clone(last));
        thread(
            "gridrpc-said",
            Box::new(move || {
                each_line(stderr, |line| {
                    let line = text(line);
                    conversation.print(&line);
                    let mut last = lock(&last);
                    if last.len() == KEPT {
                        last.pop_front();
                    }
                    last.push_back(line);
                });
                drop(done);
            }),
        );
    }
    if !started {
        child.kill();
    }
    all
}

fn each_line(mut from: impl Read, mut line: impl FnMut(&[u8])) {
    let (mut lines, mut piece) = (Lines::default(), vec![0; 8 << 10]);
    while let Ok(read @ 1..) = from.read(&mut piece) {
        lines.push(&piece[..read], &mut line);
    }
    lines.end(line);
}
