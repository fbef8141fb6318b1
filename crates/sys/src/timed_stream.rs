//! Socket with one deadline for a whole exchange: a peer that sends or receives a byte now and then gets no more
//! time.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use nix::sys::socket::{SetSockOpt, setsockopt, sockopt};
use nix::sys::time::{TimeVal, TimeValLike as _};

/// A blocking socket with a deadline; after it, reading and writing fail with `TimedOut`.
pub struct TimedStream<S> {
    stream: S,
    until: Instant,
}

impl<S: AsFd> TimedStream<S> {
    /// Wraps `stream` for `time` from now on.
    pub fn new(stream: S, time: Duration) -> TimedStream<S> {
        TimedStream { stream, until: Instant::now() + time }
    }

    fn arm<O: SetSockOpt<Val = TimeVal>>(&self, option: O) -> io::Result<()> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        // Zero would mean forever.
        let left = i64::try_from(left.as_micros()).unwrap_or(i64::MAX).max(1);
        Ok(setsockopt(&self.stream, option, &TimeVal::microseconds(left))?)
    }
}

impl<S: AsFd + Read> Read for TimedStream<S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.arm(sockopt::ReceiveTimeout)?;
        self.stream.read(buffer).map_err(timed_out)
    }
}

impl<S: AsFd + Write> Write for TimedStream<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.arm(sockopt::SendTimeout)?;
        self.stream.write(bytes).map_err(timed_out)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

fn timed_out(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::WouldBlock => io::ErrorKind::TimedOut.into(),
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn a_peer_that_sends_bytes_for_ever_is_read_until_the_deadline() {
        let (here, mut there) = UnixStream::pair().expect("a pair");
        let sends = std::thread::spawn(move || {
            while there.write_all(b" ").is_ok() {
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        let mut stream = TimedStream::new(here, Duration::from_millis(50));
        let mut text = Vec::new();
        let error = stream.read_to_end(&mut text).expect_err("it never ends");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(!text.is_empty());
        drop(stream);
        sends.join().expect("it ends with its peer");
    }

    #[test]
    fn a_peer_that_takes_nothing_is_written_to_until_the_deadline() {
        let (here, _there) = UnixStream::pair().expect("a pair");
        let mut stream = TimedStream::new(here, Duration::from_millis(50));
        let error = stream.write_all(&vec![0; 16 << 20]).expect_err("nobody takes it");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}
