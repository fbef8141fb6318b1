//! Brings a traced process that has just executed its program to the program's entry, and has it wait there.

#[cfg(target_arch = "x86_64")]
mod x86_64 {
    use std::fs;
    use std::os::fd::RawFd;

    use nix::sys::ptrace::{self, AddressType, Options};
    use nix::sys::signal::Signal;
    use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
    use nix::unistd::Pid;

    use crate::Error;
    use crate::gate::{Gate, SIZE};
    use crate::stub::CODE;

    const AT_ENTRY: u64 = 9;
    const BREAKPOINT: u64 = 0xcc;
    /// `syscall`, and a breakpoint behind it.
    const SYSTEM_CALL: u64 = 0x00cc_050f;
    /// Of a process that runs 64-bit instructions.
    const LONG_MODE: u64 = 0x33;

    /// `pid`: stopped at its exec, and traced by this thread, which does no longer trace it afterwards. `memory`:
    /// the number by which it has inherited the page of the gate.
    pub(crate) fn hold(pid: Pid, memory: RawFd, gate: &Gate) -> Result<(), Error> {
        stopped(pid)?;
        ptrace::setoptions(pid, Options::PTRACE_O_EXITKILL)?;
        if ptrace::getregs(pid)?.cs != LONG_MODE {
            return Err(Error::Entry("it is a 32-bit program".to_owned()));
        }
        let entry = entry_of(pid)?;
        let place = entry as AddressType;
        let word = ptrace::read(pid, place)?;
        // To the entry: the loader has then loaded and linked all libraries.
        write(pid, place, patched(word, BREAKPOINT, 1))?;
        go_on(pid)?;
        let at_entry = {
            let mut registers = ptrace::getregs(pid)?;
            registers.rip = entry;
            registers
        };
        // Its own system calls map the page and forget the descriptor.
        write(pid, place, patched(word, SYSTEM_CALL, 3))?;
        let access = (libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC) as u64;
        let shared = libc::MAP_SHARED as u64;
        let page = call(
            pid,
            &at_entry,
            libc::SYS_mmap,
            [0, SIZE as u64, access, shared, memory as u64, 0],
        )?;
        call(pid, &at_entry, libc::SYS_close, [memory as u64, 0, 0, 0, 0, 0])?;
        write(pid, place, word as u64)?;
        gate.leads_to(entry);
        let mut registers = at_entry;
        registers.rip = page + CODE;
        ptrace::setregs(pid, registers)?;
        ptrace::detach(pid, None)?;
        Ok(())
    }

    /// Has the stopped process make a system call, of the instruction at its entry.
    fn call(
        pid: Pid,
        at_entry: &libc::user_regs_struct,
        number: libc::c_long,
        arguments: [u64; 6],
    ) -> Result<u64, Error> {
        let mut registers = *at_entry;
        registers.rax = number as u64;
        // Nothing that the kernel would take for a call to begin again.
        registers.orig_rax = u64::MAX;
        [registers.rdi, registers.rsi, registers.rdx, registers.r10, registers.r8, registers.r9] =
            arguments;
        ptrace::setregs(pid, registers)?;
        go_on(pid)?;
        let result = ptrace::getregs(pid)?.rax;
        match i32::try_from((result as i64).wrapping_neg()) {
            Ok(error @ 1..4096) => {
                let why = std::io::Error::from_raw_os_error(error);
                Err(Error::Entry(format!("it cannot map the memory that it waits in: {why}")))
            }
            _ => Ok(result),
        }
    }

    /// Until the next breakpoint. Signals that come meanwhile are the program's own.
    fn go_on(pid: Pid) -> Result<(), Error> {
        let mut signal = None;
        loop {
            ptrace::cont(pid, signal)?;
            match next_stop(pid)? {
                Signal::SIGTRAP => return Ok(()),
                other => signal = Some(other),
            }
        }
    }

    fn stopped(pid: Pid) -> Result<(), Error> {
        next_stop(pid).map(|_| ())
    }

    fn next_stop(pid: Pid) -> Result<Signal, Error> {
        match waitpid(pid, Some(WaitPidFlag::__WALL))? {
            WaitStatus::Stopped(_, signal) | WaitStatus::PtraceEvent(_, signal, _) => Ok(signal),
            WaitStatus::Exited(_, status) => {
                Err(Error::Entry(format!("it ended before, with exit status {status}")))
            }
            WaitStatus::Signaled(_, signal, _) => {
                Err(Error::Entry(format!("it was ended before, by {signal}")))
            }
            other => Err(Error::Entry(format!("it is in an unexpected state: {other:?}"))),
        }
    }

    fn write(pid: Pid, place: AddressType, word: u64) -> Result<(), Error> {
        ptrace::write(pid, place, word as libc::c_long).map_err(Error::from)
    }

    /// The word with other bytes in front.
    fn patched(word: libc::c_long, bytes: u64, count: u32) -> u64 {
        let mask = (1 << (8 * count)) - 1;
        (word as u64 & !mask) | (bytes & mask)
    }

    /// The address where the program begins, as the kernel has told the loader.
    fn entry_of(pid: Pid) -> Result<u64, Error> {
        // Nobody may look into a process whose program may not be read.
        let vector = fs::read(format!("/proc/{pid}/auxv"))
            .map_err(|error| Error::Entry(format!("it may not be looked into: {error}")))?;
        let (words, _) = vector.as_chunks::<8>();
        words
            .chunks_exact(2)
            .map(|pair| (u64::from_ne_bytes(pair[0]), u64::from_ne_bytes(pair[1])))
            .find_map(|(kind, value)| (kind == AT_ENTRY).then_some(value))
            .ok_or_else(|| Error::Entry("the system does not tell where it begins".to_owned()))
    }
}

#[cfg(target_arch = "x86_64")]
pub(crate) use x86_64::hold;

/// Not on this architecture.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn hold(
    _pid: nix::unistd::Pid,
    _memory: std::os::fd::RawFd,
    _gate: &crate::gate::Gate,
) -> Result<(), crate::Error> {
    Err(crate::Error::Entry("this is only done on x86-64".to_owned()))
}
