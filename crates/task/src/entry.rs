//! Where the program begins on x86-64: `null` ends there, all else goes on to the C library.
//!
//! The library touches some 30 pages before `main` begins. Where many processes start at once, that
//! takes ten times as long as all that the kernel has to do for a process that ends at once.

// The stack has the number of arguments, and from there on their addresses. Four bytes are there to be
// read even if a text is shorter: others stand behind it.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
std::arch::global_asm!(
    ".globl gridbench_task_entry",
    ".type gridbench_task_entry, @function",
    "gridbench_task_entry:",
    "cmp qword ptr [rsp], 2",
    "jl 2f",
    "mov rax, [rsp + 16]",
    "cmp dword ptr [rax], {null}",
    "jne 2f",
    "cmp byte ptr [rax + 4], 0",
    "jne 2f",
    "mov eax, {exit}",
    "xor edi, edi",
    "syscall",
    "2:",
    "jmp _start",
    null = const u32::from_le_bytes(*b"null"),
    exit = const libc::SYS_exit_group,
);
