//! Safe wrappers for system features that the standard library lacks: clocks, sockets that carry descriptors, memory
//! files, limits of files, threads, memory and processors, forks, and protection against files that other users could
//! have changed.

mod control_groups;
pub mod depth;
mod errors;
pub mod fd_limit;
pub mod forks;
pub mod local_time;
mod lock;
pub mod memory;
mod memory_file;
mod output_capture;
pub mod printer;
pub mod process;
pub mod processors;
pub mod safe_path;
mod socket;
pub mod spin_wait;
pub mod status_line;
mod system;
pub mod thread_limits;
pub mod timed_stream;
pub mod worker_groups;
pub mod worker_limits;

pub use errors::{is_out_of_descriptors, limit_of, naming};
pub use lock::lock;
pub use memory_file::{
    HUGE_PAGE, Mapping, ask_for_huge_pages, beyond_select, check_foreign_memory, collapse,
    common_number, empty, file_size_limit, keeps_its_length, mappings_are_many, memory_file,
    seal_for_others, seal_for_strangers,
};
pub use output_capture::{CapturedOutput, OutputCapture, show_output_at_a_crash};
pub use printer::Printer;
pub use socket::{
    receive, receive_behind, receive_into, round_trip, send, send_before, wait_at_most,
};
pub use system::{
    boot_id, host_name, monotonic_ns, open_standard_streams, out_of_memory_kills, processor_ns,
    processor_ns_of, raise_file_limit, random, thread_ns, threads, total_memory,
};
pub use timed_stream::TimedStream;
