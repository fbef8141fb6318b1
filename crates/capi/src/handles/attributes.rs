//! Attributes of handles and sessions: values by name, as in C.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::time::Duration;

use gridrpc_core::{CallOptions, MEMORY as MEMORY_NAME, Resources};

use super::resources;
use crate::call::pending::copy;
use crate::config::{ArgumentTransfer, WaitTime};
use crate::failure::Failure;

/// `GRPC_HANDLE_ATTR_...`, by number.
const HOSTNAME: c_int = 0;
const FUNCNAME: c_int = 4;
const JOBSTARTTIMEOUT: c_int = 5;
const JOBSTOPTIMEOUT: c_int = 6;
const WAIT_ARG_TRANSFER: c_int = 7;
const MPI_NCPUS: c_int = 9;
const CORES: c_int = 10;
const MEMORY: c_int = 11;
const RESOURCES: c_int = 12;
const EXPECTED_TIME: c_int = 13;
const NAMES: c_int = 14;
/// Attributes with text values.
const TEXTS: [c_int; 7] = [HOSTNAME, 2, 3, FUNCNAME, 8, MEMORY, RESOURCES];

/// `GRPC_SESSION_ATTR_...`.
const SESSION_WAIT_ARG_TRANSFER: c_int = 0;
const SESSION_TIMEOUT: c_int = 1;
/// The first attribute for the timeout of a single transfer.
const TRANSFER_TIMEOUT: c_int = 2;
const TRANSFER_TIMEOUTS: usize = 4;

/// A value.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Value {
    Text(CString),
    Int(c_int),
}

impl Value {
    /// A copy for the caller to free.
    fn to_c(&self) -> Result<*mut c_void, Failure> {
        match self {
            Value::Text(text) => copy(text.as_bytes()).map(|copy| copy.cast()),
            Value::Int(value) => {
                // SAFETY: plain allocation, written only if there is any.
                unsafe {
                    let memory = libc::malloc(size_of::<c_int>()).cast::<c_int>();
                    if memory.is_null() {
                        return Err(Failure::other("out of memory for an attribute"));
                    }
                    memory.write(*value);
                    Ok(memory.cast())
                }
            }
        }
    }
}

fn seconds(value: c_int) -> Option<Duration> {
    u64::try_from(value).ok().filter(|value| *value > 0).map(Duration::from_secs)
}

fn transfer(value: c_int) -> Option<ArgumentTransfer> {
    match value {
        1 => Some(ArgumentTransfer::Wait),
        2 => Some(ArgumentTransfer::NoWait),
        3 => Some(ArgumentTransfer::Copy),
        _ => None,
    }
}

fn number_of(transfer: ArgumentTransfer) -> c_int {
    match transfer {
        ArgumentTransfer::Wait => 1,
        ArgumentTransfer::NoWait => 2,
        ArgumentTransfer::Copy => 3,
    }
}

fn at_least(what: &str, value: c_int, least: c_int) -> Result<(), Failure> {
    if value >= least {
        return Ok(());
    }
    Err(Failure::other(format!("the attribute {what} is {value}: it has to be at least {least}")))
}

fn check_transfer(value: c_int) -> Result<(), Failure> {
    if value == 0 || transfer(value).is_some() {
        return Ok(());
    }
    Err(Failure::other(format!("there is no argument transfer {value}")))
}

/// Attributes of a handle.
#[derive(Clone, Debug, Default)]
pub struct HandleAttributes {
    values: [Option<Value>; NAMES as usize],
}

impl HandleAttributes {
    fn index(name: c_int) -> Result<usize, Failure> {
        let index = usize::try_from(name).ok().filter(|index| *index < NAMES as usize);
        index.ok_or_else(|| Failure::other(format!("a handle has no attribute {name}")))
    }

    /// # Safety
    /// `value` is NULL or the address of a value of the attribute's type.
    pub unsafe fn set(&mut self, name: c_int, value: *const c_void) -> Result<(), Failure> {
        let index = HandleAttributes::index(name)?;
        if value.is_null() {
            self.values[index] = None;
            return Ok(());
        }
        // SAFETY: guaranteed by the caller.
        let value = unsafe {
            if TEXTS.contains(&name) {
                Value::Text(CStr::from_ptr(value.cast::<c_char>()).to_owned())
            } else {
                Value::Int(value.cast::<c_int>().read_unaligned())
            }
        };
        match (name, &value) {
            (JOBSTARTTIMEOUT, Value::Int(value)) => at_least("JOBSTARTTIMEOUT", *value, 0)?,
            (JOBSTOPTIMEOUT, Value::Int(value)) => at_least("JOBSTOPTIMEOUT", *value, -1)?,
            (WAIT_ARG_TRANSFER, Value::Int(value)) => check_transfer(*value)?,
            (MPI_NCPUS, Value::Int(value)) => at_least("MPI_NCPUS", *value, 1)?,
            (CORES, Value::Int(value)) => at_least("CORES", *value, 1)?,
            (EXPECTED_TIME, Value::Int(value)) => at_least("EXPECTED_TIME", *value, 0)?,
            (MEMORY, Value::Text(value)) => {
                resources::memory_bytes(&value.to_string_lossy())?;
            }
            (RESOURCES, Value::Text(value)) => {
                resources::amounts(&value.to_string_lossy())?;
            }
            _ => {}
        }
        self.values[index] = Some(value);
        Ok(())
    }

    /// A copy for the caller to free, or NULL if there is no value.
    pub fn get(&self, name: c_int) -> Result<*mut c_void, Failure> {
        match &self.values[HandleAttributes::index(name)?] {
            None => Ok(std::ptr::null_mut()),
            Some(value) => value.to_c(),
        }
    }

    fn text(&self, name: c_int) -> Option<String> {
        match &self.values[name as usize] {
            Some(Value::Text(text)) => Some(text.to_string_lossy().into_owned()),
            _ => None,
        }
    }

    fn int(&self, name: c_int) -> Option<c_int> {
        match &self.values[name as usize] {
            Some(Value::Int(value)) => Some(*value),
            _ => None,
        }
    }

    /// The server.
    pub fn server(&self) -> Option<String> {
        self.text(HOSTNAME)
    }

    /// The function or class.
    pub fn function(&self) -> Option<String> {
        self.text(FUNCNAME)
    }

    /// How long a worker may take to start.
    pub fn start(&self) -> Option<WaitTime> {
        let value = self.int(JOBSTARTTIMEOUT)?;
        Some(seconds(value).map_or(WaitTime::Forever, WaitTime::For))
    }

    /// How long to wait for a worker's end.
    pub fn stop(&self) -> Option<WaitTime> {
        let value = self.int(JOBSTOPTIMEOUT)?;
        Some(
            u64::try_from(value)
                .map_or(WaitTime::Forever, |value| WaitTime::For(Duration::from_secs(value))),
        )
    }

    /// When asynchronous calls return.
    pub fn transfer(&self) -> Option<ArgumentTransfer> {
        transfer(self.int(WAIT_ARG_TRANSFER)?)
    }

    /// Number of ranks of calls.
    pub fn ranks(&self) -> Option<u32> {
        u32::try_from(self.int(MPI_NCPUS)?).ok()
    }

    /// Resources that calls require besides a worker.
    pub fn options(&self) -> Result<CallOptions, Failure> {
        let mut amounts = resources::amounts(&self.text(RESOURCES).unwrap_or_default())?;
        if let Some(memory) = self.text(MEMORY) {
            amounts.push((MEMORY_NAME.into(), resources::memory_bytes(&memory)?));
        }
        let int = |name| self.int(name).and_then(|value| u32::try_from(value).ok());
        Ok(CallOptions {
            cores: int(CORES).unwrap_or(1),
            resources: Resources::new(amounts),
            expected: int(EXPECTED_TIME).map(|seconds| Duration::from_secs(seconds.into())),
            ..CallOptions::DEFAULT
        })
    }

    /// The attributes of a handle.
    pub fn of(
        server: &str,
        function: &str,
        (start, stop): (WaitTime, WaitTime),
        transfer: ArgumentTransfer,
        ranks: u32,
        options: &CallOptions,
    ) -> HandleAttributes {
        let mut attributes = HandleAttributes::default();
        let text = |text: &str| CString::new(text).ok().map(Value::Text);
        let int = |value: c_int| Some(Value::Int(value));
        let time = |wait, forever| match wait {
            WaitTime::Forever => forever,
            WaitTime::For(time) => c_int::try_from(time.as_secs()).unwrap_or(c_int::MAX),
        };
        attributes.values[HOSTNAME as usize] = text(server);
        attributes.values[FUNCNAME as usize] = text(function);
        attributes.values[JOBSTARTTIMEOUT as usize] = int(time(start, 0));
        attributes.values[JOBSTOPTIMEOUT as usize] = int(time(stop, -1));
        attributes.values[WAIT_ARG_TRANSFER as usize] = int(number_of(transfer));
        let count = |count: u32| int(c_int::try_from(count).unwrap_or(c_int::MAX));
        attributes.values[MPI_NCPUS as usize] = count(ranks);
        attributes.values[CORES as usize] = count(options.cores);
        let memory = options.resources.iter().find(|(name, _)| ***name == *MEMORY_NAME);
        attributes.values[MEMORY as usize] =
            memory.and_then(|(_, bytes)| text(&resources::memory_text(bytes)));
        let resources = resources::amounts_text(&options.resources);
        attributes.values[RESOURCES as usize] =
            (!resources.is_empty()).then(|| text(&resources)).flatten();
        attributes.values[EXPECTED_TIME as usize] =
            options.expected.and_then(|wait| int(time(WaitTime::For(wait), 0)));
        attributes
    }
}

/// Attributes of a session.
#[derive(Clone, Copy, Debug)]
pub struct SessionAttributes {
    /// When its call returns, if it is asynchronous.
    pub transfer: ArgumentTransfer,
    /// Time limit of the session.
    pub timeout: Option<Duration>,
    /// Time limits of single transfers, s: stored, without effect.
    transfer_timeouts: [c_int; TRANSFER_TIMEOUTS],
}

/// The transfer that an attribute refers to.
fn transfer_timeout(name: c_int) -> Option<usize> {
    let index = usize::try_from(name.checked_sub(TRANSFER_TIMEOUT)?).ok()?;
    (index < TRANSFER_TIMEOUTS).then_some(index)
}

impl SessionAttributes {
    /// The defaults of a handle's calls.
    pub fn new(transfer: ArgumentTransfer, timeout: Option<Duration>) -> SessionAttributes {
        SessionAttributes { transfer, timeout, transfer_timeouts: [0; TRANSFER_TIMEOUTS] }
    }

    /// # Safety
    /// `value` is NULL or the address of a value of the attribute's type.
    pub unsafe fn set(&mut self, name: c_int, value: *const c_void) -> Result<(), Failure> {
        if value.is_null() {
            return Err(Failure::other("the value of the attribute is NULL"));
        }
        // SAFETY: guaranteed by the caller.
        let value = unsafe { value.cast::<c_int>().read_unaligned() };
        match name {
            SESSION_WAIT_ARG_TRANSFER => {
                check_transfer(value)?;
                self.transfer = transfer(value).unwrap_or(self.transfer);
            }
            SESSION_TIMEOUT => {
                at_least("SESSION_TIMEOUT", value, 0)?;
                self.timeout = seconds(value);
            }
            _ => {
                let index = transfer_timeout(name).ok_or_else(|| no_such(name))?;
                at_least("TRANSFER_TIMEOUT", value, 0)?;
                self.transfer_timeouts[index] = value;
            }
        }
        Ok(())
    }

    /// A copy for the caller to free.
    pub fn get(&self, name: c_int) -> Result<*mut c_void, Failure> {
        let value = match name {
            SESSION_WAIT_ARG_TRANSFER => number_of(self.transfer),
            SESSION_TIMEOUT => {
                let seconds = self.timeout.map_or(0, |time| time.as_secs());
                c_int::try_from(seconds).unwrap_or(c_int::MAX)
            }
            _ => {
                let index = transfer_timeout(name).ok_or_else(|| no_such(name))?;
                self.transfer_timeouts[index]
            }
        };
        Value::Int(value).to_c()
    }
}

fn no_such(name: c_int) -> Failure {
    Failure::other(format!("a session has no attribute {name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set_int(attributes: &mut HandleAttributes, name: c_int, value: c_int) -> bool {
        // SAFETY: the attribute is a number.
        unsafe { attributes.set(name, (&raw const value).cast()) }.is_ok()
    }

    #[test]
    fn values_are_checked_and_copied() {
        let mut attributes = HandleAttributes::default();
        assert!(set_int(&mut attributes, JOBSTARTTIMEOUT, 7));
        assert!(!set_int(&mut attributes, JOBSTARTTIMEOUT, -1));
        assert_eq!(attributes.start(), Some(WaitTime::For(Duration::from_secs(7))));
        assert!(set_int(&mut attributes, JOBSTOPTIMEOUT, -1));
        assert_eq!(attributes.stop(), Some(WaitTime::Forever));
        assert!(!set_int(&mut attributes, WAIT_ARG_TRANSFER, 4));
        assert!(set_int(&mut attributes, MPI_NCPUS, 4) && !set_int(&mut attributes, MPI_NCPUS, 0));
        assert_eq!(attributes.ranks(), Some(4));
        assert!(!set_int(&mut attributes, NAMES, 0) && !set_int(&mut attributes, -1, 0));
        // SAFETY: the attribute is a text, and NULL is allowed.
        unsafe {
            attributes.set(HOSTNAME, c"here".as_ptr().cast()).unwrap();
            assert_eq!(attributes.server().as_deref(), Some("here"));
            attributes.set(HOSTNAME, std::ptr::null()).unwrap();
        }
        assert_eq!(attributes.server(), None);
        assert!(attributes.get(HOSTNAME).unwrap().is_null());
    }

    #[test]
    fn what_calls_ask_for_comes_back_as_it_was_set() {
        let mut attributes = HandleAttributes::default();
        assert_eq!(attributes.options(), Ok(CallOptions::DEFAULT));
        assert!(set_int(&mut attributes, CORES, 3) && !set_int(&mut attributes, CORES, 0));
        assert!(set_int(&mut attributes, EXPECTED_TIME, 60));
        assert!(!set_int(&mut attributes, EXPECTED_TIME, -1));
        // SAFETY: the attributes are texts.
        unsafe {
            attributes.set(MEMORY, c"4 GB".as_ptr().cast()).unwrap();
            attributes.set(RESOURCES, c"gpu=1".as_ptr().cast()).unwrap();
            assert!(attributes.set(MEMORY, c"4".as_ptr().cast()).is_err());
            assert!(attributes.set(RESOURCES, c"gpu".as_ptr().cast()).is_err());
        }
        let options = attributes.options().unwrap();
        assert_eq!((options.cores, options.expected), (3, Some(Duration::from_secs(60))));
        assert_eq!(options.resources.to_string(), "1 of \"gpu\" and 4 GB of memory");
        let times = (WaitTime::Forever, WaitTime::Forever);
        let of = HandleAttributes::of("", "", times, ArgumentTransfer::Wait, 1, &options);
        assert_eq!(of.options(), Ok(options));
    }

    #[test]
    fn negative_times_are_errors() {
        let mut attributes = SessionAttributes::new(ArgumentTransfer::Wait, None);
        let mut set = |value: c_int| {
            // SAFETY: the attribute is a number.
            let set = unsafe { attributes.set(SESSION_TIMEOUT, (&raw const value).cast()) };
            set.map(|()| attributes.timeout)
        };
        assert_eq!(set(3), Ok(Some(Duration::from_secs(3))));
        assert!(set(-1).is_err());
        assert_eq!(set(0), Ok(None));
    }

    #[test]
    fn limits_of_single_transfers_are_kept() {
        let mut attributes = SessionAttributes::new(ArgumentTransfer::Wait, None);
        for name in TRANSFER_TIMEOUT..TRANSFER_TIMEOUT + 4 {
            // SAFETY: the attribute is a number, and the copy is freed.
            unsafe {
                attributes.set(name, (&raw const name).cast()).unwrap();
                let copy = attributes.get(name).unwrap().cast::<c_int>();
                assert_eq!(copy.read(), name);
                libc::free(copy.cast());
            }
        }
        assert_eq!(attributes.timeout, None);
        for name in [-1, TRANSFER_TIMEOUT + 4, c_int::MIN, c_int::MAX] {
            // SAFETY: the attribute is a number.
            assert!(unsafe { attributes.set(name, (&raw const name).cast()) }.is_err());
            assert!(attributes.get(name).is_err());
        }
    }
}
