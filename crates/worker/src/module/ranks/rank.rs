//! MPI rank: a process that runs functions for the worker that started it.

use std::ffi::{CStr, OsStr, c_int, c_void};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Receiver};

use gridrpc_idl::Mode;
use gridrpc_sys::processor_ns;
use gridrpc_typed::{add_text, list_texts};
use gridrpc_wire::Order;

use super::cancellation::CANCELLED;
use super::listener::connect;
use super::protocol::{Connection, Layout, RankArgument, RankMessage};
use crate::module::entry::Entry;
use crate::module::library::Library;
use crate::module::strings::{self, Texts};

/// Serves the worker that listens at `place`, until the connection ends.
fn serve(place: &OsStr) -> io::Result<()> {
    let connection = Arc::new(connect(place)?);
    let (RankMessage::Serve(module), ..) = connection.receive()? else {
        return Err(io::ErrorKind::InvalidData.into());
    };
    let calls = receive_calls(&connection)?;
    let module = match begin(Path::new(&module)) {
        Ok((module, here)) => {
            connection.send(&here, [&[], &[]], None)?;
            module
        }
        Err(why) => {
            connection.send(&RankMessage::Failed(why), [&[], &[]], None)?;
            // Wait until the worker has received it: `mpirun` would end the other ranks, which may have to report the
            // same.
            loop {
                std::thread::park();
            }
        }
    };
    while let Ok(call) = calls.recv() {
        let returns_content = call.file.is_none() && call.content == call.stage.len;
        match run(&module, &call) {
            Ok(Done { processor, texts, memory }) => {
                let results = if returns_content { memory.results() } else { &[] };
                connection.send(&RankMessage::Returned { processor }, [&texts, results], None)?;
            }
            Err(said) => connection.send(&said, [&[], &[]], None)?,
        }
    }
    Ok(())
}

/// A call, as it came.
struct Call {
    function: String,
    stage: Layout,
    content: usize,
    places: Vec<RankArgument>,
    bytes: Vec<u8>,
    file: Option<OwnedFd>,
}

/// Receives calls and their cancellations. Ends this process when the worker is gone, even while a function runs. Not
/// by MPI_Finalize, which would wait for ranks that do something else.
fn receive_calls(connection: &Arc<Connection>) -> io::Result<Receiver<Call>> {
    let (sender, calls) = mpsc::channel();
    let connection = Arc::clone(connection);
    let receive = move || {
        loop {
            match connection.receive() {
                Ok((RankMessage::Run { function, stage, content, places }, bytes, file)) => {
                    CANCELLED.store(false, Ordering::Relaxed);
                    // Nobody takes it if this process is about to end.
                    let _ = sender.send(Call { function, stage, content, places, bytes, file });
                }
                Ok((RankMessage::Cancel, ..)) => CANCELLED.store(true, Ordering::Relaxed),
                // SAFETY: ends the process without its exit handlers.
                Ok(_) | Err(_) => unsafe { libc::_exit(0) },
            }
        }
    };
    std::thread::Builder::new().name("gridrpc-calls".into()).spawn(receive)?;
    Ok(calls)
}

/// Additional exports of the stubs of parallel functions.
#[repr(C)]
struct RawMpi {
    init: extern "C" fn(rank: *mut c_int, ranks: *mut c_int) -> c_int,
}

const SYMBOL: &CStr = c"gridrpc_mpi_v1";

/// Loads the module and becomes a rank.
fn begin(path: &Path) -> Result<(Arc<Library>, RankMessage), String> {
    // Parts of MPI that are loaded later look up its symbols globally.
    let (library, symbol) = Library::load_for_all(path, SYMBOL)?;
    let symbol = symbol.cast::<RawMpi>();
    let (mut rank, mut ranks) = (0, 0);
    // SAFETY: the stub declares the symbol with this type; the function gets two places to write to.
    let is_there = unsafe { ((*symbol.as_ptr()).init)(&raw mut rank, &raw mut ranks) } != 0;
    match (is_there, u32::try_from(rank), u32::try_from(ranks)) {
        (true, Ok(rank), Ok(ranks)) => Ok((Arc::new(library), RankMessage::Here { rank, ranks })),
        _ => Err("MPI could not be initialized".to_owned()),
    }
}

/// A call that has returned.
struct Done {
    /// Its processor time, ns.
    processor: u64,
    /// The returned texts.
    texts: Vec<u8>,
    memory: Memory,
}

/// Calls a function.
fn run(library: &Arc<Library>, call: &Call) -> Result<Done, RankMessage> {
    let entry = library.entry(&call.function).map_err(RankMessage::Failed)?;
    let (texts, memory) = call.memory()?;
    let mut given =
        RankArguments::new(&memory, &call.places, texts).map_err(RankMessage::Failed)?;
    let before = processor_ns();
    let returned = entry.run(&mut given.pointers);
    let processor = processor_ns() - before;
    // Makes its output visible now.
    // SAFETY: flushes all of C's output streams.
    unsafe { libc::fflush(std::ptr::null_mut()) };
    returned.map_err(|error| {
        let (kind, message) = (error.kind().to_owned(), error.to_string());
        RankMessage::Raised { kind, message }
    })?;
    let mut left = Vec::new();
    for (_, texts, returns) in &given.texts {
        for text in texts.now().iter().filter(|_| *returns) {
            // SAFETY: null, or a C string that the function has left.
            let text = (!text.is_null()).then(|| unsafe { CStr::from_ptr(*text) }.to_bytes());
            add_text(text, &mut left);
        }
    }
    given.free(&entry);
    Ok(Done { processor, texts: left, memory })
}

impl Call {
    /// Its texts and its memory. From another node, the memory's content comes behind the texts.
    fn memory(&self) -> Result<(&[u8], Memory), RankMessage> {
        let Call { stage, bytes, file, .. } = self;
        let failed = |error: io::Error| {
            RankMessage::Failed(format!("{} bytes of arguments ({error})", stage.len))
        };
        if let Some(file) = file {
            return Ok((bytes, Memory::new(file.as_fd(), *stage).map_err(failed)?));
        }
        let texts = bytes.len().checked_sub(self.content).filter(|_| self.content <= stage.len);
        let texts =
            texts.ok_or_else(|| RankMessage::Failed("a call came without its memory".into()))?;
        let (texts, content) = bytes.split_at(texts);
        let file = gridrpc_sys::memory_file(c"gridrpc-rank", stage.len.max(1) as u64);
        let file = File::from(file.map_err(failed)?);
        file.write_all_at(content, 0).map_err(failed)?;
        Ok((texts, Memory::new(file.as_fd(), *stage).map_err(failed)?))
    }
}

/// A part of the memory of a call, mapped.
struct View {
    start: NonNull<u8>,
    len: usize,
}

impl View {
    /// `flags`: whether changes are visible to others.
    fn new(
        file: BorrowedFd<'_>,
        offset: usize,
        len: usize,
        access: c_int,
        flags: c_int,
    ) -> io::Result<View> {
        if len == 0 {
            return Ok(View { start: NonNull::dangling(), len });
        }
        // SAFETY: a new mapping at a place of the kernel's choice, of an open file.
        let start = unsafe {
            libc::mmap(std::ptr::null_mut(), len, access, flags, file.as_raw_fd(), offset as i64)
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(View { start: NonNull::new(start.cast()).unwrap_or(NonNull::dangling()), len })
    }
}

impl Drop for View {
    fn drop(&mut self) {
        if self.len > 0 {
            // SAFETY: mapped in `new`, and nobody's any more.
            unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
        }
    }
}

/// The memory of a call, as this rank sees it.
struct Memory {
    layout: Layout,
    /// Its private part: no other rank sees its changes there.
    own: View,
    results: View,
}

impl Memory {
    fn new(file: BorrowedFd<'_>, layout: Layout) -> io::Result<Memory> {
        let Layout { results, len } = layout;
        let both = libc::PROT_READ | libc::PROT_WRITE;
        Ok(Memory {
            layout,
            own: View::new(file, 0, results, both, libc::MAP_PRIVATE)?,
            results: View::new(file, results, len - results, both, libc::MAP_SHARED)?,
        })
    }

    fn at(&self, offset: usize) -> *mut c_void {
        let (view, start) = match offset < self.layout.results {
            true => (&self.own, 0),
            false => (&self.results, self.layout.results),
        };
        view.start.as_ptr().wrapping_add(offset - start).cast()
    }

    fn results(&self) -> &[u8] {
        let View { start, len } = self.results;
        // SAFETY: mapped, and the function that wrote there has returned.
        unsafe { std::slice::from_raw_parts(start.as_ptr(), len) }
    }
}

/// Arguments of the function.
struct RankArguments {
    pointers: Vec<*mut c_void>,
    /// Index of their parameter, the texts, and whether they are returned.
    texts: Vec<(usize, Texts, bool)>,
    /// Address ranges that cannot contain texts made by the function.
    known: Vec<std::ops::Range<usize>>,
    /// Kept in place until the function has returned.
    numbers: Vec<u128>,
    news: Vec<Vec<u8>>,
}

impl RankArguments {
    fn new(
        memory: &Memory,
        places: &[RankArgument],
        mut texts: &[u8],
    ) -> Result<RankArguments, String> {
        let views = [&memory.own, &memory.results];
        let known = views.map(|view| view.start.addr().get()..view.start.addr().get() + view.len);
        let mut given = RankArguments {
            pointers: Vec::with_capacity(places.len()),
            texts: Vec::new(),
            known: known.to_vec(),
            // Full capacity, so that none moves later.
            numbers: Vec::with_capacity(places.len()),
            news: Vec::new(),
        };
        for (index, place) in places.iter().enumerate() {
            let pointer = match place {
                RankArgument::Null => std::ptr::null_mut(),
                RankArgument::Number(bytes) => {
                    given.numbers.push(u128::from_ne_bytes(*bytes));
                    given
                        .numbers
                        .last_mut()
                        .map_or(std::ptr::null_mut(), |number| std::ptr::from_mut(number).cast())
                }
                RankArgument::At(offset) => memory.at(*offset),
                RankArgument::New(len) => {
                    let mut bytes = Vec::<u8>::new();
                    let is_there = bytes.try_reserve_exact(*len);
                    is_there.map_err(|_| format!("an array of {len} bytes"))?;
                    drop(bytes);
                    // For zeroed memory the kernel allocates only touched pages.
                    let bytes = vec![0_u8; *len];
                    let start = bytes.as_ptr().cast_mut();
                    given.known.push(start.addr()..start.addr() + len);
                    given.news.push(bytes);
                    start.cast()
                }
                RankArgument::Texts { len, alone, returns } => {
                    let (own, rest) = texts.split_at_checked(*len).ok_or("texts did not come")?;
                    texts = rest;
                    let list = list_texts(own, Order::NATIVE).ok_or("what came is not text")?;
                    let mut list = Texts::new(&list);
                    let pointer = match alone {
                        true => list.now().first().map_or(std::ptr::null_mut(), |it| it.cast()),
                        false => list.start(),
                    };
                    given.texts.push((index, list, *returns));
                    pointer
                }
            };
            given.pointers.push(pointer);
        }
        Ok(given)
    }

    /// Frees the texts, including those that the function has handed over.
    fn free(self, entry: &Entry) {
        let RankArguments { texts, known, .. } = self;
        let all: Vec<_> = texts
            .into_iter()
            .map(|(index, texts, returns)| {
                let mode = entry.interface().parameters[index].mode;
                (if returns { mode } else { Mode::In }, texts)
            })
            .collect();
        if !all.is_empty() {
            strings::free(&all, entry.dialect(), || known.clone());
        }
    }
}

/// Runs as a rank until its worker is gone.
///
/// # Errors
/// When there is no such worker, or its messages are invalid.
pub fn run_rank(place: &OsStr) -> io::Result<()> {
    match serve(place) {
        // SAFETY: ends the process without its exit handlers, as its receiving thread does.
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => unsafe { libc::_exit(0) },
        ended => ended,
    }
}
