//! Calls of functions and methods, shared by all call functions of the API.

use std::sync::Arc;

use gridrpc_core::{CallOptions, Reservation};
use gridrpc_invoke::Lending;

use crate::c_types::Handle;
use crate::call::arguments::Arguments;
use crate::call::function::Function;
use crate::call::pending::{LONG, Options, Pending};
use crate::config::ArgumentTransfer;
use crate::context::call_grid::CallGrid;
use crate::context::log::Level;
use crate::environment::Environment;
use crate::errors::ErrorCode;
use crate::failure::Failure;
use crate::handles::attributes::SessionAttributes;
use crate::handles::function::{CallDefaults, FunctionHandle};
use crate::handles::object::ObjectHandle;
use crate::handles::placement::{CallTarget, place};
use crate::sessions::{HandleRecord, Origin, Session};

/// A function or method to call.
pub struct Callee<'h> {
    function: &'h Arc<Function>,
    defaults: &'h CallDefaults,
    record: &'h Arc<HandleRecord>,
    on: Option<Reservation>,
    runs_again: bool,
    handle: Handle,
    /// Address of the caller's handle; 0: none.
    address: usize,
}

impl<'h> Callee<'h> {
    /// A function.
    pub fn function(of: &'h FunctionHandle, handle: Handle, address: usize) -> Callee<'h> {
        let FunctionHandle { function, defaults, record } = of;
        Callee { function, defaults, record, on: None, runs_again: false, handle, address }
    }

    /// A method.
    pub fn method(
        of: &'h ObjectHandle,
        name: &str,
        handle: Handle,
        address: usize,
    ) -> Result<Callee<'h>, Failure> {
        let function = of.method(name)?;
        let (defaults, record, on) = (&of.defaults, &of.record, Some(of.worker));
        Ok(Callee { function, defaults, record, on, runs_again: false, handle, address })
    }

    /// The same, retried when a worker is lost.
    pub fn again(self) -> Callee<'h> {
        Callee { runs_again: true, ..self }
    }

    /// Checks that the arguments were collected for this function.
    pub fn check_codes(&self, codes: *const u8) -> Result<(), Failure> {
        if std::ptr::eq(codes, self.function.codes.as_ptr()) {
            return Ok(());
        }
        Err(Failure::other("the handle has been made again for another function meanwhile"))
    }

    fn options(&self, attributes: SessionAttributes, lending: Lending) -> Options {
        let CallDefaults { ranks, options, .. } = self.defaults;
        let call = CallOptions {
            deadline: attributes.timeout,
            idempotent: self.runs_again,
            on: self.on,
            ..options.clone()
        };
        Options { call, ranks: *ranks, lending }
    }

    /// Calls, waits for the end, and stores the results.
    ///
    /// # Safety
    /// The arguments match the interface in type and length.
    pub unsafe fn call(
        &self,
        environment: &Environment,
        attributes: Option<SessionAttributes>,
        arguments: Arguments<'_>,
    ) -> Result<(), Failure> {
        let attributes = attributes.unwrap_or_else(|| self.defaults.session_attributes());
        let options = self.options(attributes, Lending::UntilLanded);
        let call_at = |CallTarget { grid, function, counted }: CallTarget| {
            let options = options.clone();
            // SAFETY: guaranteed by the caller; results have landed before this returns.
            let pending =
                unsafe { Pending::begin(&grid.grid, &function, arguments, options, counted) };
            let pending = pending.inspect_err(|failure| self.record.ended(Some(failure)))?;
            let call = Arc::clone(&pending.call);
            environment.sessions.called(self.record, &grid, &call);
            while !grid.waiter.wait(&call, LONG) {}
            environment.sessions.returned(&call);
            let ended = pending.land();
            environment.context.call_ended(ended.info, -1, ended.code());
            self.record.ended(ended.result.as_ref().err());
            ended.result
        };
        // SAFETY: guaranteed by the caller.
        unsafe { self.place(environment, arguments, call_at) }
    }

    /// Runs a call at its server, or at the one that a directory chooses.
    ///
    /// # Safety
    /// The arguments match the interface in type and length.
    unsafe fn place<T>(
        &self,
        environment: &Environment,
        arguments: Arguments<'_>,
        run: impl Fn(CallTarget) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let Callee { function, defaults, runs_again, .. } = *self;
        // SAFETY: guaranteed by the caller.
        unsafe { place(&environment.context, defaults, function, runs_again, arguments, run) }
    }

    /// Begins a call. Returns its session.
    ///
    /// # Safety
    /// The arguments match the interface in type and length, and stay valid until a wait for the session has
    /// returned.
    pub unsafe fn begin(
        &self,
        environment: &Environment,
        attributes: Option<SessionAttributes>,
        arguments: Arguments<'_>,
    ) -> Result<i32, Failure> {
        let attributes = attributes.unwrap_or_else(|| self.defaults.session_attributes());
        let lending = match attributes.transfer {
            ArgumentTransfer::NoWait => Lending::UntilLanded,
            ArgumentTransfer::Wait | ArgumentTransfer::Copy => Lending::Copied,
        };
        let options = self.options(attributes, lending);
        let begin_at = |CallTarget { grid, function, counted }: CallTarget| {
            let options = options.clone();
            // SAFETY: guaranteed by the caller.
            let pending =
                unsafe { Pending::begin(&grid.grid, &function, arguments, options, counted) };
            let pending = pending.inspect_err(|failure| self.record.ended(Some(failure)))?;
            Ok(self.add_session(environment, &grid, pending))
        };
        // SAFETY: guaranteed by the caller.
        unsafe { self.place(environment, arguments, begin_at) }
    }

    /// Detaches a call. Returns its id.
    ///
    /// # Safety
    /// The arguments match the interface in type and length.
    pub unsafe fn detach(&self, arguments: Arguments<'_>) -> Result<String, Failure> {
        self.check_server()?;
        let options = self.options(self.defaults.session_attributes(), Lending::Detached);
        let grid = &self.defaults.grid.grid;
        // SAFETY: guaranteed by the caller.
        unsafe { Pending::detach(grid, self.function, arguments, options) }
    }

    /// Attaches to a detached call. Returns its session.
    ///
    /// # Safety
    /// As for `begin`.
    pub unsafe fn attach(
        &self,
        environment: &Environment,
        id: &str,
        arguments: Arguments<'_>,
    ) -> Result<i32, Failure> {
        self.check_server()?;
        let options = self.options(self.defaults.session_attributes(), Lending::Detached);
        let grid = &self.defaults.grid.grid;
        // SAFETY: guaranteed by the caller.
        let pending = unsafe { Pending::attach(grid, self.function, arguments, options, id) }?;
        Ok(self.add_session(environment, &self.defaults.grid, pending))
    }

    /// A call that outlives the program has one server, which the program names.
    fn check_server(&self) -> Result<(), Failure> {
        if self.defaults.directory.is_none() {
            return Ok(());
        }
        let name = &self.defaults.name;
        let detail = format!(
            "{name}: a detached call stays at its server: make the handle with that server's name, not with a directory"
        );
        Err(Failure::new(ErrorCode::ServerNotFound, detail))
    }

    fn add_session(
        &self,
        environment: &Environment,
        grid: &Arc<CallGrid>,
        pending: Pending,
    ) -> i32 {
        let main = &environment.context.grids.main;
        let origin = Origin {
            address: self.address,
            handle: self.handle,
            is_object: self.on.is_some(),
            record: Arc::clone(self.record),
            grid: Arc::clone(grid),
            nudged: (!Arc::ptr_eq(grid, main)).then(|| main.waiter.clone()),
        };
        let function = Arc::clone(self.function);
        let id = environment
            .sessions
            .begin(|id, finished| Session::new(id, origin, function, pending, finished));
        environment.context.log.write(Level::Everything, || {
            format!("session {id} calls {}", self.function.target.name)
        });
        id
    }
}
