//! What worker processes write to their standard output and error: passed on as it comes or line
//! by line with the worker's name before each, and the last lines kept for error messages.

use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use gridrpc_sys::printer::Printer;

use crate::parent::Parent;

/// What is kept, bytes.
const KEEP: usize = 4096;
/// A line longer than this is passed on in pieces, bytes.
const LONGEST_LINE: usize = 64 << 10;

/// Where the output of workers goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Output {
    /// The workers write to the client's own standard output; what they write to their standard
    /// error is passed on as it comes.
    #[default]
    Plain,
    /// Both come line by line, each line with its worker before it.
    Labelled,
    /// Both go to the client that this grid works for.
    Parent,
    /// Neither comes; only the last lines of the standard error are kept, for error messages.
    Kept,
}

/// What becomes of what is read from a stream.
#[derive(Clone, Debug)]
pub(crate) enum Passing {
    /// It is passed on as it comes.
    AsItComes,
    /// It is passed on line by line, with this before each.
    Labelled(String),
    /// It goes to the client that this grid works for, as that of this worker.
    Up(Upward),
    /// It is not passed on.
    Not,
}

/// The way to the client that a grid works for.
#[derive(Clone, Debug)]
pub(crate) struct Upward {
    pub(crate) client: Arc<dyn Parent>,
    pub(crate) worker: u32,
}

/// One of the two streams of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stream {
    Stdout,
    Stderr,
}

/// The client's own streams, which those of the processes are passed on to.
#[derive(Clone, Debug)]
pub(crate) struct Printers {
    stdout: Arc<Printer>,
    stderr: Arc<Printer>,
}

impl Printers {
    pub(crate) fn new() -> Printers {
        Printers {
            stdout: Printer::new(libc::STDOUT_FILENO),
            stderr: Printer::new(libc::STDERR_FILENO),
        }
    }

    fn of(&self, stream: Stream) -> &Arc<Printer> {
        match stream {
            Stream::Stdout => &self.stdout,
            Stream::Stderr => &self.stderr,
        }
    }

    /// Writes to one of them as it comes.
    pub(crate) fn print(&self, stderr: bool, bytes: &[u8]) {
        self.of(if stderr { Stream::Stderr } else { Stream::Stdout }).print(bytes);
    }

    /// Writes lines to one of them, with a label before each.
    pub(crate) fn print_labelled(&self, stderr: bool, label: &str, lines: &[u8]) {
        self.print(stderr, &labelled(label, lines));
    }

    /// Waits until what has come is written, but not for ever.
    pub(crate) fn settle(&self) {
        self.stdout.settle();
        self.stderr.settle();
    }
}

/// Our end of a stream of a process.
#[derive(Debug)]
pub(crate) struct Outlet {
    pipe: std::fs::File,
    printer: Arc<Printer>,
    stream: Stream,
    passing: Passing,
    /// A line whose end has not come, if lines are labelled.
    begun: Vec<u8>,
    kept: Vec<u8>,
}

impl Outlet {
    pub(crate) fn new(
        pipe: OwnedFd,
        stream: Stream,
        passing: Passing,
        printers: &Printers,
    ) -> Outlet {
        let printer = Arc::clone(printers.of(stream));
        Outlet { pipe: pipe.into(), printer, stream, passing, begun: Vec::new(), kept: Vec::new() }
    }

    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }

    /// Reads what is there. `false`: nothing more will come.
    pub(crate) fn read(&mut self) -> bool {
        let mut buffer = [0; 8192];
        loop {
            match self.pipe.read(&mut buffer) {
                Ok(0) => {
                    self.end();
                    return false;
                }
                Ok(count) => self.take(&buffer[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return error.kind() == io::ErrorKind::WouldBlock,
            }
        }
    }

    fn take(&mut self, bytes: &[u8]) {
        self.kept.extend_from_slice(bytes);
        let excess = self.kept.len().saturating_sub(KEEP);
        self.kept.drain(..excess);
        let label = match &self.passing {
            Passing::AsItComes => return self.printer.print(bytes),
            Passing::Labelled(label) => label,
            Passing::Up(up) => {
                return up.client.said(up.worker, self.stream == Stream::Stderr, bytes);
            }
            Passing::Not => return,
        };
        self.begun.extend_from_slice(bytes);
        let whole = match self.begun.iter().rposition(|byte| *byte == b'\n') {
            Some(end) => end + 1,
            None if self.begun.len() >= LONGEST_LINE => self.begun.len(),
            None => return,
        };
        let lines: Vec<u8> = self.begun.drain(..whole).collect();
        self.printer.print(&labelled(label, &lines));
    }

    /// Whether a line has begun whose end has not come.
    pub(crate) fn has_begun(&self) -> bool {
        !self.begun.is_empty()
    }

    /// What has begun is a line too: its end will not come, or not soon.
    pub(crate) fn end(&mut self) {
        if let Passing::Labelled(label) = &self.passing
            && !self.begun.is_empty()
        {
            let line = std::mem::take(&mut self.begun);
            self.printer.print(&labelled(label, &line));
        }
    }

    /// The last lines.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.kept).trim_end().to_owned()
    }
}

/// The lines with the label before each, and an end behind the last.
fn labelled(label: &str, lines: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(lines.len() + 64);
    for line in lines.split_inclusive(|byte| *byte == b'\n') {
        out.extend_from_slice(label.as_bytes());
        out.extend_from_slice(line);
    }
    if !out.ends_with(b"\n") {
        out.push(b'\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_has_its_label_and_its_end() {
        let text = |lines: &str| String::from_utf8(labelled("[w] ", lines.as_bytes())).unwrap();
        assert_eq!(text("one\ntwo\n"), "[w] one\n[w] two\n");
        assert_eq!(text("no end"), "[w] no end\n");
        assert_eq!(text("\n\n"), "[w] \n[w] \n");
    }
}
