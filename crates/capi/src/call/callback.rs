//! Callbacks: functions of the program that a remote function calls.
//!
//! Calls follow the interface's declaration: numbers by value, arrays by the address of their first element;
//! for a Fortran program, numbers by address as well. They run in a thread of the runtime, even while the
//! program waits in a call.

use std::cell::RefCell;
use std::ffi::c_void;
use std::ptr::null;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use gridrpc_client::{CallbackHandler, Grid};
use gridrpc_idl::{Kind, Parameter, Type};
use gridrpc_invoke::{CallbackFrame, CallbackValue};
use gridrpc_link::payload::{Incoming, Payload};
use gridrpc_sys::monotonic_ns;
use gridrpc_typed::Scalar;
use gridrpc_wire::Order;

/// A function of the program.
#[derive(Clone, Copy, Debug)]
pub struct Callable(*mut c_void);

// SAFETY: a function may be called from any thread; the API documents that callbacks are.
unsafe impl Send for Callable {}
// SAFETY: as above.
unsafe impl Sync for Callable {}

impl Callable {
    /// Returns `None` for NULL.
    pub fn new(address: *mut c_void) -> Option<Callable> {
        (!address.is_null()).then_some(Callable(address))
    }
}

/// Counters of a call's callbacks. Times are in ns.
#[derive(Debug, Default)]
pub struct CallCounters {
    /// Number of callbacks.
    pub count: AtomicU64,
    /// Time in the functions themselves.
    pub run: AtomicU64,
    /// Time to decode their arguments and return their results.
    pub transfer: AtomicU64,
    /// Bytes of their arguments.
    pub bytes_in: AtomicU64,
    /// Bytes of their results.
    pub bytes_out: AtomicU64,
}

/// The callbacks of one call.
pub struct Callbacks {
    /// Weak, so that an abandoned call does not keep the grid open.
    pub grid: Weak<Grid>,
    /// Data about the call.
    pub frame: CallbackFrame,
    /// The functions.
    pub functions: Vec<Callable>,
    /// Whether numbers are passed by address.
    pub by_address: bool,
    /// Counters of the callbacks.
    pub counters: Arc<CallCounters>,
}

thread_local! {
    /// The calls whose callbacks this thread runs, identified by their counters; innermost last.
    static RUNNING: RefCell<Vec<*const CallCounters>> = const { RefCell::new(Vec::new()) };
}

/// Entry in `RUNNING`, removed on drop.
struct Running;

impl Running {
    fn of(counters: &Arc<CallCounters>) -> Running {
        RUNNING.with_borrow_mut(|running| running.push(Arc::as_ptr(counters)));
        Running
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        RUNNING.with_borrow_mut(Vec::pop);
    }
}

/// Whether this thread runs a callback of the call with these counters. That call cannot end before the
/// callback returns.
pub fn runs_here(counters: &Arc<CallCounters>) -> bool {
    RUNNING.with_borrow(|running| running.contains(&Arc::as_ptr(counters)))
}

impl CallbackHandler for Callbacks {
    fn run(&self, index: u16, arguments: Vec<Incoming>, order: Order) -> Result<Payload, String> {
        let grid = self.grid.upgrade().ok_or("the grid is closed")?;
        let function =
            *self.functions.get(usize::from(index)).ok_or("there is no such callback")?;
        let add = |to: &AtomicU64, value: u64| to.fetch_add(value, Ordering::Relaxed);
        let begin = monotonic_ns();
        let mut ran = 0;
        add(&self.counters.bytes_in, arguments.iter().map(|section| section.len() as u64).sum());
        let payload =
            self.frame.run(index, (arguments, order), grid.payload(), |parameters, values| {
                let called = monotonic_ns();
                let _running = Running::of(&self.counters);
                call(function, parameters, values, self.by_address)?;
                ran = monotonic_ns() - called;
                Ok(())
            })?;
        add(&self.counters.count, 1);
        add(&self.counters.run, ran);
        add(&self.counters.transfer, (monotonic_ns() - begin).saturating_sub(ran));
        add(&self.counters.bytes_out, payload.bytes);
        Ok(payload)
    }
}

unsafe extern "C" {
    /// See trampoline.h.
    fn gridrpc_call_function(
        function: *mut c_void,
        words: *const u64,
        floats: *const f64,
        stack: *const u64,
    );
}

const WORDS: usize = if cfg!(target_arch = "x86_64") { 6 } else { 8 };
const FLOATS: usize = 8;
const STACK: usize = 32;

/// Locations of the arguments of one call.
#[derive(Default)]
struct Layout {
    words: Vec<u64>,
    floats: Vec<f64>,
    stack: Vec<u64>,
}

impl Layout {
    fn word(&mut self, word: u64) {
        if self.words.len() < WORDS { self.words.push(word) } else { self.stack.push(word) }
    }

    /// Parts of one number: all in registers or all on the stack.
    fn floats(&mut self, parts: &[u64], packed_on_stack: &[u64]) {
        if self.floats.len() + parts.len() <= FLOATS {
            self.floats.extend(parts.iter().map(|part| f64::from_bits(*part)));
            return;
        }
        if cfg!(target_arch = "aarch64") {
            // Later numbers do not go into registers either.
            self.floats.resize(FLOATS, 0.0);
        }
        self.stack.extend(packed_on_stack);
    }

    fn number(&mut self, of: Type, number: Scalar) {
        let bytes = number.to_bytes(of);
        let word = |at: usize| u64::from_ne_bytes(*bytes[at..].first_chunk().unwrap_or(&[0; 8]));
        match of {
            // Numbers smaller than a word occupy its low end, in registers too.
            Type::Float | Type::Double => self.floats(&[word(0)], &[word(0)]),
            Type::SComplex if cfg!(target_arch = "aarch64") => {
                let (re, im) = (word(0) & 0xFFFF_FFFF, word(0) >> 32);
                self.floats(&[re, im], &[word(0)]);
            }
            Type::SComplex => self.floats(&[word(0)], &[word(0)]),
            Type::DComplex => self.floats(&[word(0), word(8)], &[word(0), word(8)]),
            _ => self.word(match number {
                Scalar::Int(value) => value.cast_unsigned(),
                Scalar::Float(_) | Scalar::Complex(..) => word(0),
            }),
        }
    }
}

const KNOWN_CONVENTION: bool =
    cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) && cfg!(target_endian = "little");

fn call(
    function: Callable,
    parameters: &[Parameter],
    values: &mut [CallbackValue],
    by_address: bool,
) -> Result<(), String> {
    let mut layout = Layout::default();
    // Storage for values that are passed by address.
    let mut numbers: Vec<[u8; 16]> = vec![[0; 16]; values.len()];
    let mut strings: Vec<Vec<*const u8>> = Vec::new();
    for ((parameter, value), place) in parameters.iter().zip(values).zip(&mut numbers) {
        match (value, &parameter.kind) {
            (CallbackValue::Array { elements, .. }, _) => {
                if elements.is_empty() {
                    layout.word(place.as_mut_ptr() as u64);
                } else {
                    layout.word(elements.as_mut_ptr() as u64);
                }
            }
            (CallbackValue::Texts(texts), kind) => {
                texts.iter_mut().flatten().for_each(|text| text.push(0));
                let starts = texts.iter().map(|text| text.as_ref().map_or(null(), Vec::as_ptr));
                let starts: Vec<*const u8> = starts.collect();
                match kind {
                    Kind::Scalar(_) => layout.word(starts.first().map_or(0, |text| *text as u64)),
                    _ => layout.word(starts.as_ptr() as u64),
                }
                strings.push(starts);
            }
            (CallbackValue::Scalar(number), Kind::Scalar(of)) if by_address => {
                *place = number.to_bytes(*of);
                layout.word(place.as_mut_ptr() as u64);
            }
            (CallbackValue::Scalar(number), Kind::Scalar(of)) => {
                if !of.is_integer() && !KNOWN_CONVENTION {
                    return Err(format!(
                        "argument `{}` of a callback cannot be passed by value on this machine: \
                         declare it as an array of one element",
                        parameter.name
                    ));
                }
                layout.number(*of, *number);
            }
            (CallbackValue::Scalar(_), _) => return Err("a callback with strange arguments".into()),
        }
    }
    if layout.stack.len() > STACK {
        return Err(format!("a callback with too many arguments: {}", parameters.len()));
    }
    layout.words.resize(WORDS, 0);
    layout.floats.resize(FLOATS, 0.0);
    layout.stack.resize(STACK, 0);
    // SAFETY: the program has supplied a function with the parameters that the interface declares; the lists
    // are as long as the C part reads.
    unsafe {
        gridrpc_call_function(
            function.0,
            layout.words.as_ptr(),
            layout.floats.as_ptr(),
            layout.stack.as_ptr(),
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    static SEEN: Mutex<Vec<f64>> = Mutex::new(Vec::new());

    #[allow(clippy::too_many_arguments)]
    extern "C" fn many(
        a: i8,
        b: f32,
        c: &mut [i32; 2],
        d: i64,
        e: u16,
        f: f64,
        g: i32,
        h: i32,
        i: i32,
        j: u8,
        k: f64,
    ) {
        c[1] += c[0];
        let seen = [a.into(), b.into(), d as f64, e.into(), f, g.into(), h.into(), i.into()];
        let mut list = SEEN.lock().unwrap();
        list.extend(seen);
        list.extend([f64::from(j), k]);
    }

    #[test]
    fn arguments_arrive_whatever_their_order() {
        let source = "Module m; Define f(cb(IN char a, IN float b, INOUT int c[2], IN long d, \
                      IN unsigned short e, IN double f, IN int g, IN int h, IN int i, \
                      IN unsigned char j, IN double k)) { }";
        let parsed = gridrpc_idl::parse(source);
        let module = parsed.module.unwrap_or_else(|| panic!("{:?}", parsed.diagnostics));
        let Kind::Callback(parameters) = &module.functions[0].parameters[0].kind else {
            panic!("no callback")
        };
        let int = |value| CallbackValue::Scalar(Scalar::Int(value));
        let float = |value| CallbackValue::Scalar(Scalar::Float(value));
        let mut elements = 5_i32.to_ne_bytes().to_vec();
        elements.extend(7_i32.to_ne_bytes());
        let mut values = vec![
            int(-1),
            float(0.5),
            CallbackValue::Array { elements, dimensions: vec![2] },
            int(1 << 40),
            int(65_000),
            float(2.25),
            int(-6),
            int(7),
            int(-8),
            int(250),
            float(1e300),
        ];
        call(Callable(many as *mut c_void), parameters, &mut values, false).unwrap();
        let expected =
            [-1.0, 0.5, (1_u64 << 40) as f64, 65_000.0, 2.25, -6.0, 7.0, -8.0, 250.0, 1e300];
        assert_eq!(*SEEN.lock().unwrap(), expected);
        let CallbackValue::Array { elements, .. } = &values[2] else { panic!("no array") };
        assert_eq!(elements[4..], 12_i32.to_ne_bytes());
    }
}
