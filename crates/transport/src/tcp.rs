//! Plain TCP: bytes only, without encryption.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};

use crate::{Transport, refuse_descriptors};

/// A connected TCP socket.
#[derive(Debug)]
pub struct Tcp(pub OwnedFd);

impl Transport for Tcp {
    fn socket(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    fn send(&self, bytes: &[u8], descriptors: &[RawFd]) -> io::Result<usize> {
        refuse_descriptors(descriptors)?;
        gridrpc_sys::send(self.0.as_fd(), bytes, &[])
    }

    fn send_before(&self, bytes: &[u8], descriptors: &[RawFd]) -> io::Result<usize> {
        refuse_descriptors(descriptors)?;
        gridrpc_sys::send_before(self.0.as_fd(), bytes)
    }

    fn flush(&self) -> io::Result<bool> {
        Ok(true)
    }

    fn receive(
        &self,
        buffer: &mut [u8],
        _descriptors: &mut VecDeque<Option<OwnedFd>>,
    ) -> io::Result<usize> {
        gridrpc_sys::receive_into(self.0.as_fd(), buffer)
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
}
