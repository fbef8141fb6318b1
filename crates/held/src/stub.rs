//! The instructions that wait at a program's entry, and the room for `gate::Fields` before them.

#[cfg(target_arch = "x86_64")]
use std::arch::global_asm;

/// Where the instructions begin in the page.
pub(crate) const CODE: u64 = 64;

// At a program's entry the stack and rdx mean something to it (the number of arguments, and a function for
// its end), so that all registers are kept.
#[cfg(target_arch = "x86_64")]
global_asm!(
    ".pushsection .rodata.gridbench_stub, \"a\"",
    ".balign 64",
    ".globl gridbench_stub",
    ".hidden gridbench_stub",
    "gridbench_stub:",
    ".zero 64",
    "push rax",
    "push rcx",
    "push rdx",
    "push rsi",
    "push rdi",
    "push r8",
    "push r9",
    "push r10",
    "push r11",
    "push r12",
    "lea r12, [rip + gridbench_stub]",
    // while (open == 0) futex(&open, FUTEX_WAIT, 0, NULL)
    "2:",
    "mov eax, [r12]",
    "test eax, eax",
    "jnz 3f",
    "mov eax, 202",
    "mov rdi, r12",
    "xor esi, esi",
    "xor edx, edx",
    "xor r10d, r10d",
    "xor r8d, r8d",
    "xor r9d, r9d",
    "syscall",
    "jmp 2b",
    // while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == -EINTR)
    "3:",
    "mov eax, 230",
    "mov edi, 1",
    "mov esi, 1",
    "lea rdx, [r12 + 8]",
    "xor r10d, r10d",
    "syscall",
    "cmp eax, -4",
    "je 3b",
    // clock_gettime(CLOCK_MONOTONIC, &began)
    "mov eax, 228",
    "mov edi, 1",
    "lea rsi, [r12 + 24]",
    "syscall",
    // if (urgent) sched_setscheduler(0, SCHED_OTHER, &usual)
    "mov eax, [r12 + 4]",
    "test eax, eax",
    "jz 4f",
    "mov eax, 144",
    "xor edi, edi",
    "xor esi, esi",
    "lea rdx, [r12 + 40]",
    "syscall",
    "4:",
    "pop r12",
    "pop r11",
    "pop r10",
    "pop r9",
    "pop r8",
    "pop rdi",
    "pop rsi",
    "pop rdx",
    "pop rcx",
    "pop rax",
    "jmp qword ptr [rip + gridbench_stub + 48]",
    ".globl gridbench_stub_end",
    ".hidden gridbench_stub_end",
    "gridbench_stub_end:",
    ".popsection",
);

#[cfg(target_arch = "x86_64")]
unsafe extern "C" {
    #[link_name = "gridbench_stub"]
    static BEGIN: u8;
    #[link_name = "gridbench_stub_end"]
    static END: u8;
}

/// Writes both to a page.
///
/// # Safety
///
/// The page is of `gate::SIZE` bytes, and nobody else uses it.
#[cfg(target_arch = "x86_64")]
pub(crate) unsafe fn write_to(page: *mut u8) {
    let (begin, end) = (&raw const BEGIN, &raw const END);
    // SAFETY: all between the two symbols is one piece of memory, shorter than a page.
    unsafe { page.copy_from_nonoverlapping(begin, end.offset_from_unsigned(begin)) };
}

/// There are none for this architecture.
///
/// # Safety
///
/// None is needed.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) unsafe fn write_to(_page: *mut u8) {}
