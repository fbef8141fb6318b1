//! Splits a process's output into lines.

/// Longest line, bytes; longer ones are split.
const LONGEST: usize = 64 << 10;

/// Assembles lines from chunks of input.
#[derive(Debug, Default)]
pub(super) struct Lines {
    begun: Vec<u8>,
}

impl Lines {
    /// Adds input and calls `line` for each complete line, including its line end.
    pub(super) fn push(&mut self, mut bytes: &[u8], mut line: impl FnMut(&[u8])) {
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            let (head, rest) = bytes.split_at(end + 1);
            if self.begun.is_empty() {
                line(head);
            } else {
                self.begun.extend_from_slice(head);
                line(&std::mem::take(&mut self.begun));
            }
            bytes = rest;
        }
        self.begun.extend_from_slice(bytes);
        if self.begun.len() > LONGEST {
            self.end(line);
        }
    }

    /// Calls `line` for a last line without a line end.
    pub(super) fn end(&mut self, mut line: impl FnMut(&[u8])) {
        if !self.begun.is_empty() {
            line(&std::mem::take(&mut self.begun));
        }
    }
}

/// A line as text, without its line end.
pub(super) fn text(line: &[u8]) -> String {
    String::from_utf8_lossy(line).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(pieces: &[&[u8]]) -> Vec<Vec<u8>> {
        let (mut lines, mut found) = (Lines::default(), Vec::new());
        for piece in pieces {
            lines.push(piece, |line| found.push(line.to_vec()));
        }
        lines.end(|line| found.push(line.to_vec()));
        found
    }

    #[test]
    fn lines_are_put_together_from_pieces() {
        assert_eq!(lines(&[b"a", b"b\nc\n\nd", b"e"]), [&b"ab\n"[..], b"c\n", b"\n", b"de"]);
        assert!(lines(&[b"", b""]).is_empty());
    }

    #[test]
    fn a_line_without_an_end_is_not_kept_for_ever() {
        let piece = [b'x'; LONGEST];
        assert_eq!(lines(&[&piece, &piece, b"y"]).len(), 2);
    }
}
