//! Unix sockets, within one machine: descriptors go across with the bytes.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};

use crate::Transport;

/// A connected Unix socket.
#[derive(Debug)]
pub struct Unix(pub OwnedFd);

impl Transport for Unix {
    fn socket(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    fn send(&self, bytes: &[u8], descriptors: &[RawFd]) -> io::Result<usize> {
        gridrpc_sys::send(self.0.as_fd(), bytes, descriptors)
    }

    fn flush(&self) -> io::Result<bool> {
        Ok(true)
    }

    fn receive(
        &self,
        buffer: &mut [u8],
        descriptors: &mut VecDeque<Option<OwnedFd>>,
    ) -> io::Result<usize> {
        gridrpc_sys::receive(self.0.as_fd(), buffer, descriptors)
    }

    fn receive_into(&self, place: &mut [u8]) -> io::Result<usize> {
        gridrpc_sys::receive_into(self.0.as_fd(), place)
    }

    fn receive_behind(&self, bytes: &mut Vec<u8>, limit: usize) -> io::Result<usize> {
        gridrpc_sys::receive_behind(self.0.as_fd(), bytes, limit)
    }

    fn has_more(&self) -> bool {
        false
    }

    fn carries_descriptors(&self) -> bool {
        true
    }
}
