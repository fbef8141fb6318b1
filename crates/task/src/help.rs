//! What `--help` prints.

/// The tasks, in messages.
pub const NAMES: &str = "null, sleep, write, read, write-read, metadata, cpu or memory; `gridbench-task --help` tells more";

const USAGE: &str = "\
usage: gridbench-task TASK [OPTIONS]

The built-in tasks of `gridbench sync`. Each prints what it did as one line of
JSON: phases with seconds, bytes, operations and latencies.

  null           end at once
  sleep SECONDS  sleep
  write          write a file
  read           read what `write` has written, and check it
  write-read     write a file, read it, and remove it
  metadata       make, look at and remove directories and files
  cpu            compute
  memory         read and write memory

`gridbench-task TASK --help` tells the options.
";

const TRANSFER: &str = "
  --directory DIR  where the file DIR/worker-N.data is; DIR has to be there
  --size SIZE      of the file, such as 4K, 1.5MB, 64M (default: 64M)
  --block SIZE     how much goes in one operation (default: 1M)
  --direct         past the page cache (O_DIRECT); sizes are multiples of 4K
  --drop           drop the file from the page cache, after it has been written
                   to the device and before it is read: not timed
  --worker N       which worker this is, from 0 (default: 0)
  --of N           how many workers there are
";
const FSYNC: &str = "  --fsync          bring it to the device: timed, as part of the writing\n";
const KEEP: &str = "  --keep           do not remove the file at the end\n";
const PATTERN: &str = "
The file holds a pattern made of worker and place. Making and checking it is not
timed; opening and closing the file is.
";

/// Help text of a task, or of all.
pub fn of(task: &str) -> String {
    let usage = format!("usage: gridbench-task {task} --directory DIR [OPTIONS]\n");
    match task {
        "sleep" => "usage: gridbench-task sleep SECONDS\n".into(),
        "write" => [&usage, TRANSFER, FSYNC, PATTERN].concat(),
        "read" => [&usage, TRANSFER, PATTERN].concat(),
        "write-read" => [&usage, TRANSFER, FSYNC, KEEP, PATTERN].concat(),
        "metadata" => "\
usage: gridbench-task metadata --directory DIR [OPTIONS]

  --directory DIR    where: in DIR/worker-N, which is made; DIR has to be there
  --shared           all workers in DIR itself, with names of their own
  --operations LIST  of mkdir, create, stat, readdir, unlink, in this order
                     (default: all of them)
  --count N          how many directories `mkdir` makes, and files `create`
                     (default: 1000)
  --total N          the same for all workers together, split evenly
  --worker N         which worker this is, from 0 (default: 0)
  --of N             how many workers there are

mkdir   makes empty directories.
create  makes empty files.
stat    looks at each of these.
readdir reads the directory that they are in, and each that `mkdir` made.
unlink  removes all of them.

What `mkdir` and `create` made and nothing removed is there for the next call.
"
        .into(),
        "cpu" => "\
usage: gridbench-task cpu [--operations N | --seconds SECONDS]

Multiplies, adds and shifts whole numbers, each operation needing the result of
the one before (default: --seconds 1).
"
        .into(),
        "memory" => "\
usage: gridbench-task memory [--size SIZE] [--passes N | --seconds SECONDS]

a[i] = b[i] + 3 * c[i] over three arrays of doubles, which take SIZE together
(default: 256M), as in STREAM's triad: 24 bytes are counted for each element
(default: --seconds 1).
"
        .into(),
        _ => USAGE.into(),
    }
}
