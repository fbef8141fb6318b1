//! Strings passed to and returned by a function, and which of them to free.
//!
//! A function may store anything as a returned string: memory from `malloc`, a literal, a static buffer, one of its
//! arguments, the same text twice. The worker frees strings that it has made itself, unless the function has replaced
//! them. In our own dialect it also frees strings that the function hands over as the reference requires: new memory
//! from `malloc`. Anything that cannot be such memory is left alone.

use std::cell::RefCell;
use std::ffi::{CString, c_char, c_int, c_void};
use std::ops::Range;

use gridrpc_idl::{Dialect, Mode};

/// The strings of one parameter.
#[derive(Debug)]
pub(super) struct Texts {
    /// The received strings, each made by `malloc`.
    own: Box<[*mut c_char]>,
    /// The list that the function sees and may change.
    now: Box<[*mut c_char]>,
}

impl Texts {
    /// C strings of these texts; null for `None`. A string ends at the first zero byte of its text.
    pub(super) fn new(texts: &[Option<&[u8]>]) -> Texts {
        let own: Box<[_]> = texts.iter().map(|text| duplicate(*text)).collect();
        Texts { now: own.clone(), own }
    }

    /// Start of the list passed to the function; null if it is empty.
    pub(super) fn start(&mut self) -> *mut c_void {
        match self.now.is_empty() {
            true => std::ptr::null_mut(),
            false => self.now.as_mut_ptr().cast(),
        }
    }

    /// Replaces the strings by those that a function has returned in another process.
    pub(super) fn replace(&mut self, texts: &[Option<&[u8]>]) {
        // SAFETY: made by `malloc` here; no function has seen them.
        self.own.iter().for_each(|text| unsafe { release(*text) });
        *self = Texts::new(texts);
    }

    /// The strings that the function has returned.
    pub(super) fn now(&self) -> &[*mut c_char] {
        &self.now
    }
}

/// A C string made by `malloc`; null for `None`.
fn duplicate(text: Option<&[u8]>) -> *mut c_char {
    let Some(text) = text else { return std::ptr::null_mut() };
    let end = text.iter().position(|byte| *byte == 0).unwrap_or(text.len());
    let text = CString::new(&text[..end]).unwrap_or_default();
    // SAFETY: a C string; null if there is no memory, as for a missing string.
    unsafe { libc::strdup(text.as_ptr()) }
}

/// Frees those strings of one call that may be freed. `memory`: the memory of its other arguments.
pub(super) fn free(
    all: &[(Mode, Texts)],
    dialect: Dialect,
    memory: impl Fn() -> Vec<Range<usize>>,
) {
    if all.iter().all(|(_, texts)| texts.own == texts.now) {
        // SAFETY: made by `malloc` here, and nobody else's.
        all.iter().flat_map(|(_, texts)| &texts.own).for_each(|text| unsafe { release(*text) });
        return;
    }
    let mut left: Vec<*mut c_char> = all.iter().flat_map(|(_, texts)| texts.now.to_vec()).collect();
    left.sort_unstable();
    left.dedup();
    let mut own: Vec<*mut c_char> = Vec::new();
    for (mode, texts) in all {
        // A function that replaces the caller's text has freed that one.
        let is_ours = |text: &&*mut c_char| *mode == Mode::In || left.binary_search(text).is_ok();
        own.extend(texts.own.iter().filter(is_ours));
    }
    if dialect == Dialect::Gridrpc {
        let mut known = memory();
        known.extend(own.iter().map(|text| block(*text)));
        let handed_over = handed_over(&left, known);
        own.extend(handed_over);
    }
    own.sort_unstable();
    own.dedup();
    // SAFETY: made by `malloc`, here or by the function, which has handed it over; each once.
    own.into_iter().for_each(|text| unsafe { release(text) });
}

unsafe fn release(text: *mut c_char) {
    // SAFETY: as the caller says.
    unsafe { libc::free(text.cast()) }
}

/// Address range of a `malloc` block.
fn block(text: *mut c_char) -> Range<usize> {
    // SAFETY: a block of `malloc`, or null; nothing is read through the pointer but the block's size.
    let len = unsafe { libc::malloc_usable_size(text.cast()) };
    text.addr()..text.addr() + len
}

/// The texts, by address, that can be separate blocks: they lie in none of the known ranges, in no library, and not
/// inside of each other.
fn handed_over(texts: &[*mut c_char], mut known: Vec<Range<usize>>) -> Vec<*mut c_char> {
    known.sort_unstable_by_key(|range| range.start);
    let mut known = known.into_iter().peekable();
    // End of the last range that starts at or before the current text.
    let mut taken = 0;
    let mut own = Vec::new();
    for text in texts.iter().copied().filter(|text| !text.is_null()) {
        while let Some(range) = known.next_if(|range| range.start <= text.addr()) {
            taken = taken.max(range.end);
        }
        if text.addr() >= taken && !Libraries::contain(text.addr()) {
            taken = block(text).end;
            own.push(text);
        }
    }
    own
}

/// Address ranges of the program and its libraries, which contain literals and static buffers.
#[derive(Debug, Default)]
struct Libraries {
    /// Number of libraries loaded and unloaded so far.
    changes: (u64, u64),
    /// By address.
    ranges: Vec<Range<usize>>,
}

thread_local! {
    static LIBRARIES: RefCell<Libraries> = RefCell::default();
}

impl Libraries {
    fn contain(address: usize) -> bool {
        LIBRARIES.with_borrow_mut(|libraries| {
            let mut looked = Libraries::default();
            // SAFETY: the function takes its data for what it is.
            unsafe { libc::dl_iterate_phdr(Some(count), (&raw mut looked).cast()) };
            if looked.changes != libraries.changes {
                // SAFETY: as above.
                unsafe { libc::dl_iterate_phdr(Some(list), (&raw mut looked).cast()) };
                looked.ranges.sort_unstable_by_key(|range| range.start);
                *libraries = looked;
            }
            let after = libraries.ranges.partition_point(|range| range.start <= address);
            after > 0 && libraries.ranges[after - 1].contains(&address)
        })
    }
}

/// Takes the number of changes from the first library that the loader lists.
unsafe extern "C" fn count(
    info: *mut libc::dl_phdr_info,
    _: libc::size_t,
    data: *mut c_void,
) -> c_int {
    // SAFETY: the loader's information, and the value that this was called with.
    let (info, libraries) = unsafe { (&*info, &mut *data.cast::<Libraries>()) };
    libraries.changes = (info.dlpi_adds, info.dlpi_subs);
    1
}

/// Adds the address range of one library.
unsafe extern "C" fn list(
    info: *mut libc::dl_phdr_info,
    _: libc::size_t,
    data: *mut c_void,
) -> c_int {
    // SAFETY: the loader's information, with as many headers as it says, and the value that this was
    // called with.
    let (info, headers, libraries) = unsafe {
        let info = &*info;
        let headers = std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum));
        (info, headers, &mut *data.cast::<Libraries>())
    };
    for header in headers.iter().filter(|header| header.p_type == libc::PT_LOAD) {
        let start = info.dlpi_addr.wrapping_add(header.p_vaddr) as usize;
        libraries.ranges.push(start..start.saturating_add(header.p_memsz as usize));
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a function on an IN and three OUT strings, then frees. `malloc` aborts the process on an invalid free.
    fn with(dialect: Dialect, run: impl Fn(*mut c_char, &mut [*mut c_char])) {
        let given = Texts::new(&[Some(b"some text")]);
        let mut out = Texts::new(&[None, None, None]);
        run(given.now()[0], &mut out.now);
        free(&[(Mode::In, given), (Mode::Out, out)], dialect, Vec::new);
    }

    #[test]
    fn what_is_not_the_workers_is_never_freed() {
        static LITERAL: &std::ffi::CStr = c"literal";
        for dialect in [Dialect::Gridrpc, Dialect::NinfG] {
            with(dialect, |_, _| {});
            with(dialect, |given, out| out[0] = given);
            with(dialect, |given, out| out[1] = given.wrapping_add(3));
            with(dialect, |_, out| out[0] = LITERAL.as_ptr().cast_mut());
        }
        let copy = || duplicate(Some(b"a copy of a text"));
        with(Dialect::Gridrpc, |_, out| (out[0], out[1]) = (copy(), copy()));
        with(Dialect::Gridrpc, |_, out| out.fill(copy()));
        with(Dialect::Gridrpc, |_, out| {
            out[0] = copy();
            out[1] = out[0].wrapping_add(2);
        });
        let stored = copy();
        with(Dialect::NinfG, |_, out| out.fill(stored));
        // SAFETY: it is still there.
        unsafe { release(stored) };
    }

    #[test]
    fn arrays_are_never_freed() {
        let array: Box<[u8]> = (0..100).collect();
        let mut out = Texts::new(&[None]);
        out.now[0] = array.as_ptr().cast_mut().cast();
        let start = array.as_ptr().addr();
        let memory = || Vec::from([start..start + array.len(), 0..1]);
        free(&[(Mode::Out, out)], Dialect::Gridrpc, memory);
        assert_eq!(array[99], 99);
    }

    #[test]
    fn a_text_that_is_replaced_has_been_freed_by_the_function() {
        let mut both = Texts::new(&[Some(b"one")]);
        // SAFETY: made by `malloc`; the function frees it and stores another one.
        unsafe { release(both.now[0]) };
        both.now[0] = duplicate(Some(b"another one, and a longer one"));
        free(&[(Mode::InOut, both)], Dialect::Gridrpc, Vec::new);
    }
}
