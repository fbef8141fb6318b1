//! Conversion of received arguments to what the function takes: one pointer per parameter.

use std::ffi::{c_char, c_void};

use gridrpc_idl::{Extent, Function, Kind, Mode, Parameter, Type, extents};
use gridrpc_link::payload::Incoming;
use gridrpc_shm::segment::PooledSegment;
use gridrpc_typed::{
    NamedFile, Scalar, Scalars, Shape, decode_files, decode_texts, dtype, scatter,
};
use gridrpc_wire::{Array, Order, Ranks, Value, WireError, decode_values};

use crate::link::{ArgumentOrder, WorkerLink};
use crate::module::entry::Entry;
use crate::module::error::CallError;
use crate::module::files::CallFile;
use crate::module::strings::{self, Texts};

/// Location of an argument's memory.
#[derive(Debug)]
pub(super) enum Backing {
    /// No memory to keep.
    None,
    /// A number, boxed so that it stays in place.
    Scalar(#[allow(dead_code)] Box<[u8; 16]>),
    /// The call's section with this number, as received.
    Section(u16),
    /// The call's section with this number: the client's memory for the result.
    Room(u16),
    /// A buffer of this worker.
    Buffer(Vec<u8>),
    /// In a segment of this worker.
    Shared(PooledSegment),
    /// Strings; the function may replace those that are returned.
    Texts(Texts),
    /// Files, and the paths passed to the function.
    Files(Vec<Option<CallFile>>, #[allow(dead_code)] Box<[*mut c_char]>),
}

/// An array or list, and its location.
#[derive(Debug)]
pub(super) struct Argument {
    pub(super) place: Backing,
    pub(super) shape: Shape,
}

/// All arguments of the function.
#[derive(Debug)]
pub(super) struct Arguments {
    entry: Entry,
    /// Number of ranks of a parallel function.
    pub(super) ranks: Ranks,
    pub(super) scalars: Scalars,
    pub(super) pointers: Vec<*mut c_void>,
    pub(super) arguments: Vec<Argument>,
}

impl Arguments {
    /// Takes the arguments of a call. Arguments to be changed or returned are moved out of `sections`, unless they
    /// lie in the client's memory.
    pub(super) fn take(
        entry: &Entry,
        link: &WorkerLink,
        sections: &mut [Incoming],
        orders: &ArgumentOrder,
    ) -> Result<Arguments, CallError> {
        let order = orders.call;
        let function = entry.interface();
        let misread = |error: WireError| CallError::Arguments(error.to_string());
        let head = sections.first().map(Incoming::bytes).unwrap_or_default();
        let (ranks, values) = Ranks::take(head, order).map_err(misread)?;
        let ranks = ranks.unwrap_or(Ranks { ranks: 1, threads: 1, command: String::new() });
        let values = match values {
            [] => Vec::new(),
            values => decode_values(values, order).map_err(misread)?,
        };
        let count = function.parameters.len();
        if values.len() != count {
            return Err(CallError::misfit(function, values.len()));
        }
        let mut taken = Arguments {
            entry: entry.clone(),
            ranks,
            scalars: Scalars::new(function),
            pointers: vec![std::ptr::null_mut(); count],
            arguments: Vec::with_capacity(count),
        };
        taken.know_scalars(function, &values, sections, orders)?;
        for (index, value) in values.into_iter().enumerate() {
            let (argument, pointer) = taken
                .argument(function, index, value, link, sections, order)
                .map_err(|why| named(why, &function.parameters[index]))?;
            taken.arguments.push(argument);
            taken.pointers[index] = pointer;
        }
        Ok(taken)
    }

    /// Collects scalars first: sizes may depend on scalars anywhere in the list.
    fn know_scalars(
        &mut self,
        function: &Function,
        values: &[Value],
        sections: &mut [Incoming],
        orders: &ArgumentOrder,
    ) -> Result<(), CallError> {
        for (index, (parameter, value)) in function.parameters.iter().zip(values).enumerate() {
            match (&parameter.kind, value) {
                (Kind::Scalar(_), Value::Int(value)) => {
                    self.scalars.set(index, Scalar::Int(*value));
                }
                (Kind::Scalar(_), Value::Array(array)) => make_native(array, sections, orders),
                (Kind::Array { element, .. }, Value::Array(array)) => {
                    make_native(array, sections, orders);
                    let section = sections.get(usize::from(array.section));
                    if element.is_integer()
                        && parameter.mode != Mode::Out
                        && let Some(section) = section
                    {
                        self.scalars.set_elements(function, index, section.bytes());
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn argument(
        &self,
        function: &Function,
        index: usize,
        value: Value,
        link: &WorkerLink,
        sections: &mut [Incoming],
        order: Order,
    ) -> Result<(Argument, *mut c_void), CallError> {
        let parameter = &function.parameters[index];
        let plain = |place, pointer| {
            let shape = Shape::new(Vec::new(), false, 1);
            Ok((Argument { place, shape }, pointer))
        };
        match &parameter.kind {
            Kind::Callback(_) => plain(Backing::None, std::ptr::null_mut()),
            Kind::Scalar(of @ (Type::String | Type::Filename)) => {
                let (argument, pointer) = match of {
                    Type::String => {
                        let texts = texts(parameter, 1, value, sections, order)?;
                        list_of_texts(&texts, Vec::new())
                    }
                    _ => list_of_files(parameter, Vec::new(), &value, sections, order)?,
                };
                let in_place = *of == Type::String && parameter.mode != Mode::In;
                if in_place {
                    return Ok((argument, pointer));
                }
                // SAFETY: the list has one pointer.
                let pointer = unsafe { *pointer.cast::<*mut c_void>() };
                Ok((argument, pointer))
            }
            Kind::Scalar(of) => {
                let bytes = Box::new(scalar(*of, value, sections)?.to_bytes(*of));
                let pointer = std::ptr::from_ref(&*bytes).cast_mut().cast();
                plain(Backing::Scalar(bytes), pointer)
            }
            Kind::Array { element, .. } => {
                let extents = extents(function, index, &self.scalars)
                    .map_err(|error| CallError::Arguments(error.to_string()))?;
                match element {
                    Type::String => {
                        let count = extents.iter().map(|extent| extent.size as usize).product();
                        let texts = texts(parameter, count, value, sections, order)?;
                        Ok(list_of_texts(&texts, extents))
                    }
                    Type::Filename => list_of_files(parameter, extents, &value, sections, order),
                    _ => self.array(parameter, *element, extents, value, link, sections),
                }
            }
        }
    }

    fn array(
        &self,
        parameter: &Parameter,
        element: Type,
        extents: Vec<Extent>,
        value: Value,
        link: &WorkerLink,
        sections: &mut [Incoming],
    ) -> Result<(Argument, *mut c_void), CallError> {
        let function = self.entry.interface();
        let shape = Shape::new(extents, function.fortran(), element.size().unwrap_or(1));
        let section = match value {
            Value::Array(array) => {
                let expected = shape.selected() as u64;
                if Some(array.dtype) != dtype(element) || array.shape != [expected] {
                    return Err(CallError::Arguments(format!(
                        "it has to have {expected} elements of type {}, but {:?} of {} came",
                        element.idl_name(),
                        array.shape,
                        array.dtype.name()
                    )));
                }
                Some(array.section)
            }
            Value::None => None,
            other => return Err(CallError::Arguments(format!("{other:?} came for an array"))),
        };
        let len = section.and_then(|at| sections.get(usize::from(at))).map(Incoming::len);
        if section.is_some() && len != Some(shape.selected_bytes()) {
            return Err(CallError::Arguments("its elements did not come".into()));
        }
        let comes = matches!(parameter.mode, Mode::In | Mode::InOut);
        if comes && section.is_none() {
            return Err(CallError::Arguments("it did not come".into()));
        }
        let goes = matches!(parameter.mode, Mode::Out | Mode::InOut);
        let place = match section {
            Some(at) if shape.is_whole() => {
                let section = &mut sections[usize::from(at)];
                match section {
                    // A call that may run twice must find its arguments unchanged.
                    Incoming::Shared(stretch) if goes && (!comes || !function.idempotent) => {
                        debug_assert_eq!(stretch.len(), shape.bytes());
                        Backing::Room(at)
                    }
                    Incoming::Bytes(bytes) if goes => Backing::Buffer(std::mem::take(bytes)),
                    _ if !goes => Backing::Section(at),
                    other => Backing::Buffer(other.bytes().to_vec()),
                }
            }
            Some(at) if comes => {
                let mut whole = zeroed(shape.bytes())?;
                scatter(&shape, sections[usize::from(at)].bytes(), &mut whole);
                Backing::Buffer(whole)
            }
            // The result is sent from where the function writes it.
            _ if goes && shape.is_whole() && !link.payload().is_small(shape.bytes()) => {
                let lent = link.payload().take_shared(shape.bytes() as u64);
                match lent.map_err(|error| CallError::Memory(error.to_string()))? {
                    Some(lent) => {
                        lent.make_ready(shape.bytes() as u64);
                        Backing::Shared(lent)
                    }
                    None => Backing::Buffer(zeroed(shape.bytes())?),
                }
            }
            // Ranks have memory of their own.
            _ if parameter.mode == Mode::Work && !function.is_parallel() => {
                match link.take_work(shape.bytes()) {
                    Some(lent) => Backing::Shared(lent),
                    None => Backing::Buffer(zeroed(shape.bytes())?),
                }
            }
            _ => Backing::Buffer(zeroed(shape.bytes())?),
        };
        let pointer = match &place {
            // As in Ninf-G: functions test the pointer to see whether there is any data.
            _ if shape.bytes() == 0 => std::ptr::null_mut(),
            Backing::Section(at) | Backing::Room(at) => start(&sections[usize::from(*at)]),
            Backing::Buffer(bytes) => bytes.as_ptr().cast_mut().cast(),
            Backing::Shared(lent) => match lent.start(shape.bytes() as u64) {
                Ok(start) => start.as_ptr().cast(),
                Err(error) => return Err(CallError::Memory(error.to_string())),
            },
            _ => std::ptr::null_mut(),
        };
        Ok((Argument { place, shape }, pointer))
    }

    /// Leaks the strings: after an exception nobody knows which of them the function had freed.
    pub(super) fn leave_texts(&mut self) {
        let places = self.arguments.iter_mut().map(|argument| &mut argument.place);
        places
            .filter(|place| matches!(place, Backing::Texts(_)))
            .for_each(|place| *place = Backing::None);
    }

    pub(super) fn interface(&self) -> &Function {
        self.entry.interface()
    }
}

impl Drop for Arguments {
    fn drop(&mut self) {
        let modes = self.entry.interface().parameters.iter().map(|parameter| parameter.mode);
        let mut all = Vec::new();
        for (argument, mode) in self.arguments.iter_mut().zip(modes) {
            if matches!(argument.place, Backing::Texts(_))
                && let Backing::Texts(texts) = std::mem::replace(&mut argument.place, Backing::None)
            {
                all.push((mode, texts));
            }
        }
        if all.is_empty() {
            return;
        }
        let arrays = || {
            let arguments = self.pointers.iter().zip(&self.arguments);
            arguments.map(|(start, it)| start.addr()..start.addr() + it.shape.bytes()).collect()
        };
        strings::free(&all, self.entry.dialect(), arrays);
    }
}

pub(super) fn named(error: CallError, parameter: &Parameter) -> CallError {
    match error {
        CallError::Arguments(why) => {
            CallError::Arguments(format!("argument `{}`: {why}", parameter.name))
        }
        CallError::Memory(why) => {
            CallError::Memory(format!("argument `{}`: {why}", parameter.name))
        }
        other => other,
    }
}

/// Start of a section. It is writable if it belongs to this call alone.
fn start(section: &Incoming) -> *mut c_void {
    match section {
        Incoming::Shared(stretch) => stretch.start().as_ptr().cast(),
        other => other.bytes().as_ptr().cast_mut().cast(),
    }
}

fn zeroed(len: usize) -> Result<Vec<u8>, CallError> {
    // Reserved first, so that a size beyond all memory is an error and not an abort.
    let mut bytes = Vec::<u8>::new();
    bytes.try_reserve_exact(len).map_err(|_| CallError::Memory(format!("{len} bytes")))?;
    drop(bytes);
    Ok(vec![0; len])
}

/// Converts elements from the other byte order to this machine's.
pub(super) fn make_native(array: &Array, sections: &mut [Incoming], orders: &ArgumentOrder) {
    let order = orders.of(array.section);
    if order == Order::NATIVE {
        return;
    }
    match sections.get_mut(usize::from(array.section)) {
        Some(Incoming::Bytes(bytes)) => array.dtype.make_native(order, bytes),
        Some(section) => {
            let mut bytes = section.bytes().to_vec();
            array.dtype.make_native(order, &mut bytes);
            *section = Incoming::Bytes(bytes);
        }
        None => {}
    }
}

fn scalar(of: Type, value: Value, sections: &[Incoming]) -> Result<Scalar, CallError> {
    match value {
        Value::Int(value) => Some(Scalar::Int(value)),
        Value::Float(value) => Some(Scalar::Float(value)),
        Value::Array(array) => sections
            .get(usize::from(array.section))
            .filter(|_| Some(array.dtype) == dtype(of) && array.shape.is_empty())
            .and_then(|section| Scalar::from_bytes(of, section.bytes())),
        _ => None,
    }
    .ok_or_else(|| CallError::Arguments(format!("it is no {}", of.idl_name())))
}

/// The received strings; only empty places if none were sent.
fn texts(
    parameter: &Parameter,
    count: usize,
    value: Value,
    sections: &[Incoming],
    order: Order,
) -> Result<Vec<Option<Vec<u8>>>, CallError> {
    match value {
        Value::Bytes(at) => {
            let section = sections.get(usize::from(at)).map(Incoming::bytes).unwrap_or_default();
            let broken = || CallError::Arguments(format!("it is not a list of {count} strings"));
            decode_texts(section, order, count).ok_or_else(broken)
        }
        Value::None if matches!(parameter.mode, Mode::Out | Mode::Work) => {
            let mut texts = Vec::new();
            let enough = texts.try_reserve_exact(count);
            enough.map_err(|_| CallError::Memory(format!("{count} strings")))?;
            texts.resize(count, None);
            Ok(texts)
        }
        _ => Err(CallError::Arguments("it did not come".into())),
    }
}

/// A list of strings, in the form that the function takes.
fn list_of_texts(texts: &[Option<Vec<u8>>], extents: Vec<Extent>) -> (Argument, *mut c_void) {
    let texts: Vec<Option<&[u8]>> = texts.iter().map(Option::as_deref).collect();
    let mut texts = Texts::new(&texts);
    // A boxed slice does not move.
    let pointer = texts.start();
    let shape = Shape::new(extents, false, 1);
    (Argument { place: Backing::Texts(texts), shape }, pointer)
}

/// A list of paths, in the form that the function takes. NULL and empty names stay as they are.
fn list_of_files(
    parameter: &Parameter,
    extents: Vec<Extent>,
    value: &Value,
    sections: &[Incoming],
    order: Order,
) -> Result<(Argument, *mut c_void), CallError> {
    let count = extents.iter().map(|extent| extent.size as usize).product();
    let named = match value {
        Value::Bytes(at) => {
            let section = sections.get(usize::from(*at)).map(Incoming::bytes).unwrap_or_default();
            let broken = || CallError::Arguments(format!("it is not a list of {count} files"));
            decode_files(section, order, count).ok_or_else(broken)?
        }
        Value::None if matches!(parameter.mode, Mode::Out | Mode::Work) => {
            vec![NamedFile::Content(Vec::new()); count]
        }
        _ => return Err(CallError::Arguments("it did not come".into())),
    };
    let file = |named: NamedFile| match named {
        NamedFile::Null => Ok(None),
        NamedFile::Empty => Ok(Some(CallFile::unnamed())),
        NamedFile::Content(content) => CallFile::new(&content).map(Some),
    };
    let files: std::io::Result<Vec<_>> = named.into_iter().map(file).collect();
    let files = files.map_err(|error| CallError::Memory(format!("a file: {error}")))?;
    let pointer = |file: &Option<CallFile>| {
        file.as_ref().map_or(std::ptr::null_mut(), |file| file.path.as_ptr().cast_mut())
    };
    let mut pointers: Box<[_]> = files.iter().map(pointer).collect();
    let pointer = match pointers.is_empty() {
        true => std::ptr::null_mut(),
        false => pointers.as_mut_ptr().cast(),
    };
    let shape = Shape::new(extents, false, 1);
    Ok((Argument { place: Backing::Files(files, pointers), shape }, pointer))
}
