//! Calls with many items: the function is called once for each, with pointers into the received columns.

use std::cell::Cell;
use std::ffi::{CStr, c_void};
use std::ptr::NonNull;

use gridrpc_idl::{Function, Kind, Mode, Parameter, Type, Values};
use gridrpc_link::payload::{Incoming, Payload};
use gridrpc_shm::partial::{ALIGNED, AppendBuffer, Items as ItemsSoFar};
use gridrpc_sys::monotonic_ns;
use gridrpc_typed::{Scalar, Shape, Sizes, add_text, dtype, list_texts};
use gridrpc_wire::{Array, Chunk, DType, Order, Value};

use crate::link::{ArgumentOrder, WorkerLink};
use crate::module::arguments::{make_native, named};
use crate::module::entry::Entry;
use crate::module::error::CallError;
use crate::module::strings::{self, Texts};

/// Maximum number of items between two clock readings: a reading costs as much as a small function.
const MOST_BETWEEN_LOOKS: u64 = 64;
/// Target time between clock readings, ns.
const BETWEEN_LOOKS: u64 = 50_000;

/// Values of one parameter for all items.
enum Column<'s> {
    /// One number per item, with its size in bytes.
    Scalars(&'s [u8], usize),
    /// Arrays as received, and where that of the next item starts.
    In(&'s [u8], usize),
    /// Arrays to be changed, and where that of the next item starts.
    Changed(Vec<u8>, usize),
    /// Results, and the number of bytes of those of the items that have run.
    Out(Vec<u8>, usize),
    /// A work array.
    Work(Vec<u8>),
    /// Received strings; where those of the next item start; those of the running item; and the returned strings so
    /// far.
    Texts { came: Vec<Option<&'s [u8]>>, at: usize, now: Option<Texts>, left: Vec<u8> },
}

thread_local! {
    /// The chunk that runs in this thread.
    static INTERRUPTED: Cell<Option<NonNull<c_void>>> = const { Cell::new(None) };
}

/// A call with many items.
pub(super) struct Items<'s> {
    entry: &'s Entry,
    columns: Vec<Column<'s>>,
    pointers: Vec<*mut c_void>,
    chunk: Chunk,
    /// Partial results for the client if this process is lost, and the copies of results there, by column. The
    /// function writes elsewhere: otherwise a child that it forks could write there too.
    so_far: ItemsSoFar,
    buffers: Vec<Option<AppendBuffer>>,
    done: u32,
    /// There is no room for more copies, so no further item starts.
    full: bool,
    error: Option<CallError>,
}

impl<'s> Items<'s> {
    /// Takes the columns of a call.
    pub(super) fn take(
        entry: &'s Entry,
        sections: &'s mut [Incoming],
        orders: &ArgumentOrder,
        mut so_far: ItemsSoFar,
    ) -> Result<Items<'s>, CallError> {
        let order = orders.call;
        let function = entry.interface();
        let head = sections.first().map(Incoming::bytes).unwrap_or_default();
        let (chunk, values) =
            Chunk::decode(head, order).map_err(|error| CallError::Arguments(error.to_string()))?;
        if values.len() != function.parameters.len() {
            return Err(CallError::misfit(function, values.len()));
        }
        let mut changed = Vec::with_capacity(values.len());
        for (parameter, value) in function.parameters.iter().zip(&values) {
            let Value::Array(array) = value else {
                changed.push(Vec::new());
                continue;
            };
            make_native(array, sections, orders);
            let changes = parameter.mode == Mode::InOut;
            let section = sections.get_mut(usize::from(array.section)).filter(|_| changes);
            changed.push(match section {
                Some(Incoming::Bytes(bytes)) => std::mem::take(bytes),
                Some(other) => other.bytes().to_vec(),
                None => Vec::new(),
            });
        }
        let sections: &'s [Incoming] = sections;
        let parameters = function.parameters.iter().zip(values).zip(changed);
        let columns = parameters.map(|((parameter, value), changed)| {
            column(parameter, value, changed, sections, order, chunk.items)
                .map_err(|why| named(why, parameter))
        });
        let columns: Vec<_> = columns.collect::<Result<_, _>>()?;
        let pointers = vec![std::ptr::null_mut(); columns.len()];
        let buffers = room_for_copies(function, &mut so_far);
        Ok(Items {
            entry,
            columns,
            pointers,
            chunk,
            so_far,
            buffers,
            done: 0,
            full: false,
            error: None,
        })
    }

    /// Calls the function for each item in turn, until one fails or time is up.
    pub(super) fn run(&mut self) {
        let function = self.entry.interface();
        let mut sizes = Sizes::new(function);
        let mut looked = monotonic_ns();
        let until = match self.chunk.limit {
            0 => u64::MAX,
            limit => looked.saturating_add(limit),
        };
        let (mut step, mut since) = (1, 0);
        while self.done < self.chunk.items && !self.full {
            if since >= step && until < u64::MAX {
                let now = monotonic_ns();
                if now >= until {
                    break;
                }
                let quick = now - looked < BETWEEN_LOOKS;
                (looked, since) = (now, 0);
                step = if quick { MOST_BETWEEN_LOOKS.min(2 * step) } else { 1 };
            }
            since += 1;
            if let Err(error) = self.run_next(function, &mut sizes) {
                self.error = Some(error);
                break;
            }
        }
        INTERRUPTED.set(None);
    }

    /// The results of the chunk that runs in this thread, whose next item ends the process with that error. `None` if
    /// no chunk runs.
    pub(super) fn interrupted(
        error: CallError,
        link: &WorkerLink,
    ) -> Option<Result<Payload, CallError>> {
        let items = INTERRUPTED.take()?;
        // SAFETY: set where the item was called. Its frames, which own the items, never resume.
        let mut items = unsafe { items.cast::<Items<'_>>().read() };
        items.error = Some(error);
        Some(items.into_results(link))
    }

    fn run_next(&mut self, function: &Function, sizes: &mut Sizes<'_>) -> Result<(), CallError> {
        let at = self.done as usize;
        let item = Item { function, columns: &self.columns, at };
        let (shapes, _) = sizes.of(&item).map_err(|(index, error)| {
            named(CallError::Arguments(error.to_string()), &function.parameters[index])
        })?;
        let places = self.columns.iter_mut().zip(&mut self.pointers).enumerate();
        for (index, (column, pointer)) in places {
            let shape = shapes.get(index).and_then(Option::as_ref).map(|(_, shape)| shape);
            let parameter = &function.parameters[index];
            *pointer =
                column.start(parameter, shape, at).map_err(|error| named(error, parameter))?;
        }
        self.so_far.begin();
        INTERRUPTED.set(Some(NonNull::from(&mut *self).cast()));
        self.entry.run(&mut self.pointers)?;
        let mut has_texts = false;
        let mut all_kept = true;
        for (index, (column, buffers)) in self.columns.iter_mut().zip(&mut self.buffers).enumerate()
        {
            let mut keep = |bytes: &[u8]| {
                all_kept &= buffers.as_mut().is_none_or(|buffers| buffers.push(bytes));
            };
            let len = || shapes.get(index).and_then(Option::as_ref).map_or(0, |(_, of)| of.bytes());
            match column {
                Column::Scalars(..) | Column::Work(_) => {}
                Column::In(_, at) => *at += len(),
                Column::Changed(bytes, at) => {
                    let from = *at;
                    *at += len();
                    keep(&bytes[from..*at]);
                }
                Column::Out(bytes, done) => {
                    keep(&bytes[*done..]);
                    *done = bytes.len();
                }
                Column::Texts { now, left, .. } => {
                    has_texts = true;
                    if let Some(now) = now.as_ref()
                        && function.parameters[index].mode != Mode::In
                    {
                        let before = left.len();
                        now.now().iter().for_each(|text| add_left(*text, left));
                        keep(&left[before..]);
                    }
                }
            }
        }
        if has_texts {
            self.free_texts(function, shapes);
        }
        self.done += 1;
        if all_kept {
            self.so_far.end();
        }
        self.full = !all_kept;
        Ok(())
    }

    /// Frees those strings of the completed item that may be freed.
    fn free_texts(&mut self, function: &Function, shapes: &[Option<(Vec<u64>, Shape)>]) {
        let mut all = Vec::new();
        for (column, parameter) in self.columns.iter_mut().zip(&function.parameters) {
            if let Column::Texts { now, .. } = column {
                all.extend(now.take().map(|texts| (parameter.mode, texts)));
            }
        }
        let pointers = &self.pointers;
        let arrays = || {
            let arguments = pointers.iter().zip(shapes);
            let arrays = arguments.filter_map(|(start, of)| {
                let (_, shape) = of.as_ref()?;
                Some(start.addr()..start.addr() + shape.bytes())
            });
            arrays.collect()
        };
        strings::free(&all, self.entry.dialect(), arrays);
    }

    /// The returned data: the results of the items that have run, column by column.
    pub(super) fn into_results(self, link: &WorkerLink) -> Result<Payload, CallError> {
        let Items { entry, columns, done, error, .. } = self;
        let no_memory = |error: std::io::Error| CallError::Memory(error.to_string());
        let mut payload = link.payload();
        let mut values = Vec::with_capacity(columns.len() + 2);
        let mut section = 1;
        for (column, parameter) in columns.into_iter().zip(&entry.interface().parameters) {
            let elements = of(parameter).and_then(dtype);
            let (bytes, len) = match column {
                Column::Out(bytes, done) => (bytes, done),
                Column::Changed(bytes, at) => (bytes, at),
                Column::Texts { left, .. } if parameter.mode != Mode::In => {
                    let len = left.len();
                    (left, len)
                }
                _ => {
                    values.push(Value::None);
                    continue;
                }
            };
            let mut bytes = bytes;
            bytes.truncate(len);
            values.push(match elements {
                Some(dtype) => {
                    let shape = vec![(len / dtype.size()) as u64];
                    Value::Array(Array { dtype, fortran: false, shape, section })
                }
                None => Value::Bytes(section),
            });
            payload.add_owned(bytes).map_err(no_memory)?;
            section += 1;
        }
        if let Some(error) = error {
            values.push(Value::Text(error.kind().into()));
            values.push(Value::Text(error.to_string()));
        }
        let mut bytes = Vec::with_capacity(64);
        Chunk { items: done, limit: 0 }
            .encode(&values, Order::NATIVE, &mut bytes)
            .map_err(|error| CallError::Arguments(error.to_string()))?;
        payload.add_first(&bytes).map_err(no_memory)?;
        Ok(payload.finish())
    }
}

impl Column<'_> {
    /// The pointer passed to the function for item number `at`.
    fn start(
        &mut self,
        parameter: &Parameter,
        shape: Option<&Shape>,
        at: usize,
    ) -> Result<*mut c_void, CallError> {
        let len = shape.map_or(0, Shape::bytes);
        let short = || CallError::Arguments("its elements did not come".into());
        Ok(match self {
            Column::Scalars(bytes, size) => bytes[at * *size..].as_ptr().cast_mut().cast(),
            // As in Ninf-G: functions test the pointer to see whether there is any data.
            Column::In(..) | Column::Changed(..) | Column::Out(..) | Column::Work(_)
                if len == 0 =>
            {
                std::ptr::null_mut()
            }
            Column::In(bytes, from) => {
                let stretch = bytes.get(*from..).filter(|rest| rest.len() >= len);
                stretch.ok_or_else(short)?.as_ptr().cast_mut().cast()
            }
            Column::Changed(bytes, from) => {
                let stretch = bytes.get_mut(*from..).filter(|rest| rest.len() >= len);
                stretch.ok_or_else(short)?.as_mut_ptr().cast()
            }
            Column::Out(bytes, _) => {
                let from = bytes.len();
                grow(bytes, len)?;
                bytes[from..].as_mut_ptr().cast()
            }
            Column::Work(bytes) => {
                bytes.clear();
                grow(bytes, len)?;
                bytes.as_mut_ptr().cast()
            }
            Column::Texts { came, at, now, .. } => {
                let count = shape.map_or(1, Shape::count);
                let texts = now.insert(if parameter.mode == Mode::Out {
                    Texts::new(&nothing(count)?)
                } else {
                    let own = came.get(*at..*at + count).ok_or_else(short)?;
                    *at += count;
                    Texts::new(own)
                });
                match parameter.kind {
                    // The function gets the string itself where it cannot replace it.
                    Kind::Scalar(_) if parameter.mode == Mode::In => texts.now()[0].cast(),
                    _ => texts.start(),
                }
            }
        })
    }
}

/// Memory for copies of results, in equal parts for all parameters that return data. Empty if there is not enough for
/// one of them.
fn room_for_copies(function: &Function, so_far: &mut ItemsSoFar) -> Vec<Option<AppendBuffer>> {
    let gives = |parameter: &Parameter| matches!(parameter.mode, Mode::Out | Mode::InOut);
    let parameters = &function.parameters;
    let count = parameters.iter().filter(|parameter| gives(parameter)).count();
    let share = so_far.room() / count.max(1) / ALIGNED * ALIGNED;
    let section = |parameter| gives(parameter).then(|| so_far.section(share)).flatten();
    let buffers: Vec<_> = parameters.iter().map(section).collect();
    if buffers.iter().flatten().count() < count {
        so_far.give_up();
    }
    buffers
}

/// The type of a parameter that is not a callback.
fn of(parameter: &Parameter) -> Option<Type> {
    match &parameter.kind {
        Kind::Scalar(of) | Kind::Array { element: of, .. } => Some(*of),
        Kind::Callback(_) => None,
    }
}

/// The column of a parameter. `changed`: its elements, if the function changes them.
fn column<'s>(
    parameter: &Parameter,
    value: Value,
    changed: Vec<u8>,
    sections: &'s [Incoming],
    order: Order,
    items: u32,
) -> Result<Column<'s>, CallError> {
    let alone = || CallError::Arguments("it cannot go with other items".into());
    let of = of(parameter).filter(|of| *of != Type::Filename).ok_or_else(alone)?;
    let comes = matches!(parameter.mode, Mode::In | Mode::InOut);
    let missing = || CallError::Arguments("it did not come".into());
    let section = |index: u16| sections.get(usize::from(index)).map(Incoming::bytes);
    let Some(dtype) = dtype(of) else {
        let came = match value {
            Value::Bytes(at) if comes => section(at).and_then(|bytes| list_texts(bytes, order)),
            Value::None if !comes => Some(Vec::new()),
            _ => None,
        };
        let came = came.ok_or_else(missing)?;
        return Ok(Column::Texts { came, at: 0, now: None, left: Vec::new() });
    };
    if !comes {
        return Ok(match parameter.mode {
            Mode::Work => Column::Work(Vec::new()),
            _ => Column::Out(Vec::new(), 0),
        });
    }
    let Value::Array(array) = value else { return Err(missing()) };
    if parameter.mode == Mode::InOut {
        return Ok(Column::Changed(checked(dtype, &array, changed.len()).map(|()| changed)?, 0));
    }
    let bytes = section(array.section).ok_or_else(missing)?;
    checked(dtype, &array, bytes.len())?;
    match parameter.kind {
        Kind::Scalar(_) => {
            if bytes.len() != items as usize * dtype.size() {
                return Err(missing());
            }
            Ok(Column::Scalars(bytes, dtype.size()))
        }
        _ => Ok(Column::In(bytes, 0)),
    }
}

/// Checks that this many bytes match the announced array.
fn checked(dtype: DType, array: &Array, len: usize) -> Result<(), CallError> {
    if array.dtype != dtype || array.byte_len() != Some(len as u64) {
        return Err(CallError::Arguments(format!(
            "{len} bytes came for {:?} elements of {}",
            array.shape,
            array.dtype.name()
        )));
    }
    Ok(())
}

/// Empty places for the strings that the function is to fill.
fn nothing(count: usize) -> Result<Vec<Option<&'static [u8]>>, CallError> {
    let mut texts = Vec::new();
    let enough = texts.try_reserve_exact(count);
    enough.map_err(|_| CallError::Memory(format!("{count} strings")))?;
    texts.resize(count, None);
    Ok(texts)
}

fn grow(bytes: &mut Vec<u8>, len: usize) -> Result<(), CallError> {
    bytes.try_reserve(len).map_err(|_| CallError::Memory(format!("{len} bytes")))?;
    bytes.resize(bytes.len() + len, 0);
    Ok(())
}

/// Appends one string that the function has returned.
fn add_left(text: *mut std::ffi::c_char, left: &mut Vec<u8>) {
    // SAFETY: null, or a C string that the function has left.
    add_text((!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_bytes()), left);
}

/// Values of the next item.
struct Item<'a, 's> {
    function: &'a Function,
    columns: &'a [Column<'s>],
    at: usize,
}

impl Values for Item<'_, '_> {
    fn scalar(&self, parameter: usize) -> Option<i64> {
        let Kind::Scalar(of) = self.function.parameters.get(parameter)?.kind else { return None };
        let Column::Scalars(bytes, size) = self.columns.get(parameter)? else { return None };
        integer(of, bytes.get(self.at * size..)?)
    }

    fn element(&self, parameter: usize, index: u64) -> Option<i64> {
        let Kind::Array { element, .. } = self.function.parameters.get(parameter)?.kind else {
            return None;
        };
        let (bytes, at) = match self.columns.get(parameter)? {
            Column::In(bytes, at) => (*bytes, *at),
            Column::Changed(bytes, at) => (&bytes[..], *at),
            _ => return None,
        };
        let from = usize::try_from(index).ok()?.checked_mul(element.size()?)?;
        integer(element, bytes.get(at.checked_add(from)?..)?)
    }
}

fn integer(of: Type, bytes: &[u8]) -> Option<i64> {
    match Scalar::from_bytes(of, bytes)? {
        Scalar::Int(value) => Some(value),
        _ => None,
    }
}
