//! Standard output and error of worker processes. Passes them on as they come, or line by line with the worker's name
//! as a prefix, and keeps the last lines for error messages.

use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use gridrpc_sys::printer::Printer;

use crate::parent::Parents;

/// Size of the kept tail, bytes.
const KEEP: usize = 4096;
/// Maximum line length, bytes; longer lines are split.
const LONGEST_LINE: usize = 64 << 10;

/// Destination of the workers' output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Output {
    /// The workers write to the client's own standard output; their standard error is passed on as it comes.
    #[default]
    Plain,
    /// Both are passed on line by line, with the worker's name as a prefix.
    Labelled,
    /// Both go to the clients that this grid works for.
    Parent,
    /// Both are discarded; only the last lines of standard error are kept for error messages.
    Kept,
}

/// Treatment of data read from a stream.
#[derive(Clone, Debug)]
pub(crate) enum OutputRoute {
    /// It is passed on as it comes.
    AsItComes,
    /// Passed on line by line with this prefix.
    Labelled(String),
    /// Sent to the clients that this grid works for, as output of this worker.
    Up(ClientRoute),
    /// Not passed on.
    Not,
}

/// Route to the clients that a grid works for.
#[derive(Clone, Debug)]
pub(crate) struct ClientRoute {
    pub(crate) clients: Arc<Parents>,
    pub(crate) worker: u32,
}

/// One of the two streams of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stream {
    Stdout,
    Stderr,
}

/// The client's own standard output and error.
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

    /// Writes raw bytes to a stream.
    pub(crate) fn print(&self, stderr: bool, bytes: &[u8]) {
        self.of(if stderr { Stream::Stderr } else { Stream::Stdout }).print(bytes);
    }

    /// Writes lines to a stream, each with a label as prefix.
    pub(crate) fn print_labelled(&self, stderr: bool, label: &str, lines: &[u8]) {
        self.print(stderr, &labelled(label, lines));
    }

    /// Waits a bounded time until everything has been written.
    pub(crate) fn settle(&self) {
        self.stdout.settle();
        self.stderr.settle();
    }
}

/// Our end of a process's stream.
#[derive(Debug)]
pub(crate) struct OutputPipe {
    pipe: std::fs::File,
    printer: Arc<Printer>,
    stream: Stream,
    passing: OutputRoute,
    /// An incomplete line, if lines are labelled.
    begun: Vec<u8>,
    partial_line: Vec<u8>,
}

impl OutputPipe {
    pub(crate) fn new(
        pipe: OwnedFd,
        stream: Stream,
        passing: OutputRoute,
        printers: &Printers,
    ) -> OutputPipe {
        let printer = Arc::clone(printers.of(stream));
        OutputPipe {
            pipe: pipe.into(),
            printer,
            stream,
            passing,
            begun: Vec::new(),
            partial_line: Vec::new(),
        }
    }

    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }

    /// Reads the available data. Returns `false` at the end of the stream.
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
        self.partial_line.extend_from_slice(bytes);
        let excess = self.partial_line.len().saturating_sub(KEEP);
        self.partial_line.drain(..excess);
        let label = match &self.passing {
            OutputRoute::AsItComes => return self.printer.print(bytes),
            OutputRoute::Labelled(label) => label,
            OutputRoute::Up(up) => {
                let is_stderr = self.stream == Stream::Stderr;
                return up.clients.each(|client| client.said(up.worker, is_stderr, bytes));
            }
            OutputRoute::Not => return,
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

    /// Whether an incomplete line is buffered.
    pub(crate) fn has_begun(&self) -> bool {
        !self.begun.is_empty()
    }

    /// Passes on the incomplete line: its end will not come, or not soon.
    pub(crate) fn end(&mut self) {
        if let OutputRoute::Labelled(label) = &self.passing
            && !self.begun.is_empty()
        {
            let line = std::mem::take(&mut self.begun);
            self.printer.print(&labelled(label, &line));
        }
    }

    /// The last lines, as text.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.partial_line).trim_end().to_owned()
    }
}

/// The lines, each with the label as prefix and a line end.
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
