//! Conversion of arguments from C to the runtime.

use std::ffi::{CStr, c_char, c_void};
use std::ptr;

use gridrpc_idl::{Kind, Mode, Type, Values, extents};
use gridrpc_invoke::{ArgumentValue, Memory};
use gridrpc_typed::Scalar;
use gridrpc_wire::Order;

use super::callback::Callable;
use super::function::{Function, ReadAs};
use crate::c_types::Slot;
use crate::failure::Failure;

/// The arguments of a call as received.
#[derive(Clone, Copy)]
pub enum Arguments<'a> {
    /// From a variadic function: in slots, numbers by value unless the function takes addresses.
    Slots(&'a [Slot]),
    /// From a list of addresses.
    Addresses(&'a [*mut c_void]),
    /// From an argument stack.
    Stack(&'a [StackArgument]),
}

/// An argument of a stack: an address that only a call dereferences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StackArgument {
    /// The address.
    pub address: *mut c_void,
    /// Length of the array there, if the program has stated it.
    pub bytes: Option<usize>,
}

// SAFETY: any thread may hold the address itself. Code that dereferences it acts for a caller, who must
// prevent concurrent access.
unsafe impl Send for StackArgument {}

/// The arguments of a call for the runtime, and where its results go.
pub struct CallInput {
    /// The arguments for the runtime.
    pub given: Vec<ArgumentValue>,
    /// Functions for callbacks, in order.
    pub callbacks: Vec<Callable>,
    /// Destinations of strings in the results, by parameter.
    pub texts: Vec<(usize, TextPlace)>,
}

/// Destination for the addresses of strings.
#[derive(Clone, Copy, Debug)]
pub struct TextPlace {
    /// The address.
    pub place: *mut *mut c_char,
    /// Whether it holds an input string, which stays if it is not changed.
    pub has_text: bool,
}

// SAFETY: the memory belongs to the caller, who has promised not to touch it until the call has ended,
// whichever thread waits for it.
unsafe impl Send for TextPlace {}
// SAFETY: nothing is done through a shared reference.
unsafe impl Sync for TextPlace {}

impl Arguments<'_> {
    fn len(&self) -> usize {
        match self {
            Arguments::Slots(slots) => slots.len(),
            Arguments::Addresses(addresses) => addresses.len(),
            Arguments::Stack(stack) => stack.len(),
        }
    }

    /// The address given as the argument, or the address of its number.
    fn address(&self, index: usize) -> *mut c_void {
        match self {
            // SAFETY: slots are zeroed before one of their members is set.
            Arguments::Slots(slots) => unsafe { slots[index].address },
            Arguments::Addresses(addresses) => addresses[index],
            Arguments::Stack(stack) => stack[index].address,
        }
    }

    /// Length of the array given as the argument, if it was stated.
    fn bytes(&self, index: usize) -> Option<usize> {
        match self {
            Arguments::Slots(_) | Arguments::Addresses(_) => None,
            Arguments::Stack(stack) => stack[index].bytes,
        }
    }

    /// # Safety
    /// The arguments match the parameters of `function`.
    unsafe fn number(&self, function: &Function, index: usize, of: Type) -> Option<Scalar> {
        match self {
            Arguments::Slots(slots) if !function.by_address => {
                // SAFETY: the C part has set the member for the parameter's code.
                Some(unsafe { by_value(of, slots[index]) })
            }
            // SAFETY: the caller guarantees the address of such a number.
            _ => unsafe { behind(of, self.address(index)) },
        }
    }
}

/// # Safety
/// The slot's member for this type has been set.
unsafe fn by_value(of: Type, slot: Slot) -> Scalar {
    // SAFETY: guaranteed by the caller.
    unsafe {
        match of {
            Type::Float | Type::Double => Scalar::Float(slot.double),
            Type::SComplex => {
                Scalar::Complex(f64::from(slot.scomplex[0]), f64::from(slot.scomplex[1]))
            }
            Type::DComplex => Scalar::Complex(slot.dcomplex[0], slot.dcomplex[1]),
            of if of.size().is_some_and(|size| size <= size_of::<i32>()) => {
                // As in C, excess bits are cut off.
                let int = Scalar::Int(slot.int.into());
                Scalar::from_bytes(of, &int.to_bytes(of)).unwrap_or(int)
            }
            _ => Scalar::Int(slot.long),
        }
    }
}

/// # Safety
/// `address` is NULL or the address of a number of this type.
unsafe fn behind(of: Type, address: *const c_void) -> Option<Scalar> {
    if address.is_null() {
        return None;
    }
    let mut bytes = [0; 16];
    let size = of.size()?.min(bytes.len());
    // SAFETY: the caller guarantees this many bytes.
    unsafe { ptr::copy_nonoverlapping(address.cast::<u8>(), bytes.as_mut_ptr(), size) };
    Scalar::from_bytes(of, &bytes)
}

/// # Safety
/// `text` is NULL or the address of a NUL-terminated string.
unsafe fn text(text: *const c_char) -> Option<Vec<u8>> {
    // SAFETY: guaranteed by the caller.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_bytes().to_vec())
}

/// Values for computing sizes, before the runtime has the arguments.
struct SizeInputs<'a> {
    function: &'a Function,
    arguments: Arguments<'a>,
}

impl Values for SizeInputs<'_> {
    fn scalar(&self, parameter: usize) -> Option<i64> {
        let ReadAs::Number(of) = *self.function.takes.get(parameter)? else { return None };
        // SAFETY: as for all arguments.
        match unsafe { self.arguments.number(self.function, parameter, of) } {
            Some(Scalar::Int(value)) => Some(value),
            _ => None,
        }
    }

    fn element(&self, parameter: usize, index: u64) -> Option<i64> {
        let Kind::Array { element, .. } = self.function.parameters().get(parameter)?.kind else {
            return None;
        };
        let start = self.arguments.address(parameter);
        let at = usize::try_from(index).ok()?.checked_mul(element.size()?)?;
        let ends_before = |bytes| bytes < at.saturating_add(element.size().unwrap_or(0));
        if start.is_null() || self.arguments.bytes(parameter).is_some_and(ends_before) {
            return None;
        }
        // SAFETY: the caller passes an array of the length that the interface declares.
        match unsafe { behind(element, start.cast::<u8>().add(at).cast()) } {
            Some(Scalar::Int(value)) => Some(value),
            _ => None,
        }
    }
}

/// Converts the arguments of a call.
///
/// # Safety
/// They match the function's interface in type and length.
pub unsafe fn take(function: &Function, arguments: Arguments<'_>) -> Result<CallInput, Failure> {
    let wanted = function.takes.len();
    let name = &function.target.name;
    if arguments.len() != wanted {
        let got = arguments.len();
        return Err(Failure::other(format!(
            "{name}: it has {wanted} parameters, but {got} are given"
        )));
    }
    let mut taken =
        CallInput { given: Vec::with_capacity(wanted), callbacks: Vec::new(), texts: Vec::new() };
    for (index, take) in function.takes.iter().enumerate() {
        let parameter = &function.parameters()[index];
        let bad = |problem: &str| {
            Failure::other(format!("{name}: argument `{}` {problem}", parameter.name))
        };
        let address = arguments.address(index);
        let given = match *take {
            ReadAs::Nothing => ArgumentValue::Absent,
            ReadAs::Number(of) => {
                // SAFETY: guaranteed by the caller.
                let number = unsafe { arguments.number(function, index, of) };
                ArgumentValue::Scalar(number.ok_or_else(|| bad("is a null pointer"))?)
            }
            ReadAs::Array => ArgumentValue::Array(Memory {
                start: address.cast(),
                len: arguments.bytes(index),
                shape: None,
                order: Order::NATIVE,
            }),
            ReadAs::Callback => {
                let callable = Callable::new(address).ok_or_else(|| bad("is a null pointer"))?;
                taken.callbacks.push(callable);
                ArgumentValue::Callback
            }
            ReadAs::Text | ReadAs::Texts => {
                let count =
                    if *take == ReadAs::Text { 1 } else { count(function, index, arguments)? };
                let stated = arguments.bytes(index).map(|bytes| bytes / size_of::<*mut c_char>());
                if let Some(stated) = stated.filter(|stated| *stated != count) {
                    return Err(bad(&format!("has {stated} elements, but has to have {count}")));
                }
                // SAFETY: the caller guarantees this many strings.
                unsafe { texts(&mut taken, function, index, address, count) }
                    .ok_or_else(|| bad("is a null pointer"))?
            }
        };
        taken.given.push(given);
    }
    Ok(taken)
}

/// Number of elements in an array of strings.
fn count(function: &Function, index: usize, arguments: Arguments<'_>) -> Result<usize, Failure> {
    let known = SizeInputs { function, arguments };
    let extents = extents(function.target.interface(), index, &known)
        .map_err(|error| Failure::other(format!("{}: {error}", function.target.name)))?;
    Ok(extents.iter().map(|extent| extent.size).product::<u64>() as usize)
}

/// The strings or file names of one argument. `None`: there is no destination for results.
///
/// # Safety
/// `address` is the address of a string or, for arrays and results, of `count` addresses of strings.
unsafe fn texts(
    taken: &mut CallInput,
    function: &Function,
    index: usize,
    address: *mut c_void,
    count: usize,
) -> Option<ArgumentValue> {
    let parameter = &function.parameters()[index];
    let is_file = matches!(
        parameter.kind,
        Kind::Scalar(Type::Filename) | Kind::Array { element: Type::Filename, .. }
    );
    let is_array = matches!(parameter.kind, Kind::Array { .. });
    let stores = !is_file && function.goes_out(index);
    if !is_array && !stores {
        // SAFETY: the caller guarantees a string.
        return Some(ArgumentValue::Texts(vec![unsafe { text(address.cast()) }]));
    }
    let place = address.cast::<*mut c_char>();
    if place.is_null() && count > 0 {
        // Without a destination, a list of output strings is discarded.
        let is_unwanted = is_array && stores && parameter.mode == Mode::Out;
        return is_unwanted.then_some(ArgumentValue::Absent);
    }
    if stores {
        let has_text = parameter.mode == Mode::InOut;
        taken.texts.push((index, TextPlace { place, has_text }));
        if parameter.mode == Mode::Out {
            return Some(ArgumentValue::Absent);
        }
    }
    // SAFETY: the caller guarantees this many addresses of strings.
    let texts = (0..count).map(|at| unsafe { text(place.add(at).read()) });
    Some(ArgumentValue::Texts(texts.collect()))
}
