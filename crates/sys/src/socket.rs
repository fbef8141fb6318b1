//! Bytes and descriptors over sockets.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

use gridrpc_wire::MAX_DESCRIPTORS;

use crate::errors::check;

/// The kernel's estimate of the round-trip time of this TCP connection.
///
/// # Errors
/// As `getsockopt(2)`, for a socket of another kind.
pub fn round_trip(socket: BorrowedFd<'_>) -> io::Result<Duration> {
    // SAFETY: the structure is plain numbers, and the kernel writes no more than its size.
    let info = unsafe {
        let mut info: libc::tcp_info = std::mem::zeroed();
        let mut size = size_of::<libc::tcp_info>() as libc::socklen_t;
        let level = libc::IPPROTO_TCP;
        let place = (&raw mut info).cast();
        let result =
            libc::getsockopt(socket.as_raw_fd(), level, libc::TCP_INFO, place, &raw mut size);
        check(result as isize)?;
        info
    };
    Ok(Duration::from_micros(info.tcpi_rtt.into()))
}

const CONTROL_LEN: usize = 1152;

/// Buffer for the control message that carries descriptors, with the kernel's alignment.
#[repr(C, align(8))]
struct Control([u8; CONTROL_LEN]);

const _: () = assert!(CONTROL_LEN >= 16 + 4 * MAX_DESCRIPTORS as usize + 8);

/// Sends bytes, with descriptors attached to the first of them. Never raises SIGPIPE.
///
/// # Errors
/// As `sendmsg(2)`.
pub fn send(socket: BorrowedFd<'_>, bytes: &[u8], descriptors: &[RawFd]) -> io::Result<usize> {
    let flags = libc::MSG_NOSIGNAL;
    if descriptors.is_empty() {
        return send_with(socket, bytes, flags);
    }
    let mut control = Control([0; CONTROL_LEN]);
    let mut part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    let size = size_of_val(descriptors) as u32;
    // SAFETY: an all-zero msghdr is valid. The header lies in `control`, which is large enough for
    // it and for MAX_DESCRIPTORS descriptors; all pointers outlive the call.
    unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = (&raw mut control).cast();
        message.msg_controllen = libc::CMSG_SPACE(size) as usize;
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        (*header).cmsg_level = libc::SOL_SOCKET;
        (*header).cmsg_type = libc::SCM_RIGHTS;
        (*header).cmsg_len = libc::CMSG_LEN(size) as usize;
        let data = libc::CMSG_DATA(header).cast::<RawFd>();
        std::ptr::copy_nonoverlapping(descriptors.as_ptr(), data, descriptors.len());
        check(libc::sendmsg(socket.as_raw_fd(), &raw const message, flags))
    }
}

/// Sends bytes that are followed by more at once: they go in one packet with those, or a moment later.
///
/// # Errors
/// As `send(2)`.
pub fn send_before(socket: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<usize> {
    send_with(socket, bytes, libc::MSG_NOSIGNAL | libc::MSG_MORE)
}

fn send_with(socket: BorrowedFd<'_>, bytes: &[u8], flags: i32) -> io::Result<usize> {
    // SAFETY: pointer and length are those of a live slice.
    check(unsafe { libc::send(socket.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), flags) })
}

/// Sets how long a blocking socket waits for bytes before it returns `WouldBlock`; zero: forever.
///
/// # Errors
/// As `setsockopt(2)`.
pub fn wait_at_most(socket: BorrowedFd<'_>, longest: Duration) -> io::Result<()> {
    let seconds = i64::try_from(longest.as_secs()).unwrap_or(i64::MAX);
    let longest = nix::sys::time::TimeVal::new(seconds, longest.subsec_micros().into());
    Ok(nix::sys::socket::setsockopt(&socket, nix::sys::socket::sockopt::ReceiveTimeout, &longest)?)
}

/// Receives bytes into `buffer` and appends received descriptors to `descriptors`. Descriptors are lost if this
/// process may have no more. Returns 0 at the end of the stream.
///
/// # Errors
/// As `recvmsg(2)`.
pub fn receive(
    socket: BorrowedFd<'_>,
    buffer: &mut [u8],
    descriptors: &mut VecDeque<Option<OwnedFd>>,
) -> io::Result<usize> {
    let mut control = Control([0; CONTROL_LEN]);
    let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    // SAFETY: an all-zero msghdr is valid; all pointers outlive the call; control headers are
    // walked as the kernel left them, and each descriptor found is new and ours alone.
    unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = (&raw mut control).cast();
        message.msg_controllen = CONTROL_LEN;
        let flags = libc::MSG_CMSG_CLOEXEC;
        let length = check(libc::recvmsg(socket.as_raw_fd(), &raw mut message, flags))?;
        let mut header = libc::CMSG_FIRSTHDR(&raw const message);
        while !header.is_null() {
            if (*header).cmsg_level == libc::SOL_SOCKET && (*header).cmsg_type == libc::SCM_RIGHTS {
                let bytes = (*header).cmsg_len - libc::CMSG_LEN(0) as usize;
                let data = libc::CMSG_DATA(header).cast::<RawFd>();
                for index in 0..bytes / size_of::<RawFd>() {
                    let descriptor = OwnedFd::from_raw_fd(data.add(index).read_unaligned());
                    descriptors.push_back(Some(descriptor));
                }
            }
            header = libc::CMSG_NXTHDR(&raw const message, header);
        }
        if message.msg_flags & libc::MSG_CTRUNC != 0 {
            descriptors.push_back(None);
        }
        Ok(length)
    }
}

/// Receives at most `limit` bytes and appends them. Returns 0 at the end of the stream.
///
/// # Errors
/// As `recv(2)`.
pub fn receive_behind(
    socket: BorrowedFd<'_>,
    bytes: &mut Vec<u8>,
    limit: usize,
) -> io::Result<usize> {
    let old = bytes.len();
    let free = bytes.spare_capacity_mut();
    let room = free.len().min(limit);
    // SAFETY: the kernel writes at most `room` bytes behind the old length, within the capacity,
    // and the length grows by as many as it wrote.
    unsafe {
        let count = check(libc::recv(socket.as_raw_fd(), free.as_mut_ptr().cast(), room, 0))?;
        bytes.set_len(old + count);
        Ok(count)
    }
}

/// Receives bytes into `place`. Returns 0 at the end of the stream.
///
/// # Errors
/// As `recv(2)`.
pub fn receive_into(socket: BorrowedFd<'_>, place: &mut [u8]) -> io::Result<usize> {
    // SAFETY: the kernel writes at most as many bytes as `place` has.
    check(unsafe { libc::recv(socket.as_raw_fd(), place.as_mut_ptr().cast(), place.len(), 0) })
}
