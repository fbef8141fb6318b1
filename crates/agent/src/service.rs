//! What a daemon offers to its users, and what each of them may do.

use std::fmt;
use std::io;
use std::sync::Arc;

use gridrpc_client::{Call, FunctionRef, Grid, Profile};
use gridrpc_core::{BlobId, CallOptions, Owner};
use gridrpc_link::payload::Incoming;
use gridrpc_wire::{FunctionForm, Order, TraceContext};

use crate::named_data::NamedData;
use crate::user::User;
use gridrpc_client::{RequestError, RequestSections};

/// The owner of a daemon's grid.
pub trait Service: Send + Sync {
    /// Admits a connection.
    ///
    /// # Errors
    /// Why the user may not connect.
    fn admit(&self, user: &User) -> Result<(), String>;

    /// Answers a request. A thread of its own calls it, and it may block.
    ///
    /// # Errors
    /// Whatever the program is to raise.
    fn answer(
        &self,
        user: &User,
        name: &str,
        sections: RequestSections,
    ) -> Result<RequestSections, RequestError>;

    /// Whether the user may send functions, modules, and names of modules to import.
    fn may_send_code(&self, user: &User) -> bool;

    /// A client that makes calls.
    ///
    /// # Errors
    /// Why the user may make no calls.
    fn open(&self, user: &User) -> Result<Rights, String>;

    /// The client is gone, and its calls have been cancelled.
    fn close(&self, user: &User, owner: Owner);

    /// Reports a failure of a connection, after which the daemon continues.
    fn warn(&self, message: &str) {
        eprintln!("gridrpc: {message}");
    }
}

/// What a client of a daemon may do.
#[derive(Debug)]
pub struct Rights {
    /// The owner of its calls on the daemon's grid.
    pub owner: Owner,
    /// Checks each of its steps; none: it may do everything.
    pub access: Option<Arc<dyn Access>>,
}

/// Checks what one client does.
pub trait Access: fmt::Debug + Send + Sync {
    /// Finds a function that the client names.
    ///
    /// # Errors
    /// When the client may not call it, or there is none.
    fn find(&self, form: FunctionForm, name: &str) -> Result<NamedFunction, Denied>;

    /// Begins a call, with this many bytes of arguments, of a function that the client has sent. May change its
    /// options. `trace`: the client's span. `more_workers`: those that it takes besides a reserved one.
    ///
    /// # Errors
    /// When a limit is reached.
    fn begin(
        &self,
        function: &FunctionRef,
        bytes: u64,
        trace: Option<TraceContext>,
        more_workers: u32,
        options: &mut CallOptions,
    ) -> Result<Box<dyn Permit>, Denied>;

    /// Reserves a worker, for an object.
    ///
    /// # Errors
    /// When a limit is reached.
    fn reserve(&self) -> Result<Box<dyn Permit>, Denied>;

    /// Keeps shared data of so many bytes on this host.
    ///
    /// # Errors
    /// When a limit is reached.
    fn share(&self, bytes: u64) -> Result<Box<dyn Permit>, Denied>;

    /// The data that the daemon keeps under a name, by its number.
    ///
    /// # Errors
    /// When there is none that the client may read, or no memory for it.
    fn named_data(&self, blob: BlobId) -> Result<Arc<NamedData>, Denied>;

    /// Stores a call, so that it does not end with its client.
    ///
    /// # Errors
    /// When it needs its client, or there is no room for it.
    fn keep(&self, call: DetachRequest<'_>) -> Result<Box<dyn DetachedEntry>, Denied>;

    /// Largest payload of a call or of shared data, bytes. A larger one is not received.
    fn max_payload(&self) -> u64;

    /// The error of a call or of shared data with a larger payload.
    fn exceeds_payload(&self, bytes: u64) -> Denied;
}

/// A function that a client has named.
#[derive(Clone, Debug)]
pub enum NamedFunction {
    /// One that the daemon offers.
    Offered(Arc<dyn ServedFunction>),
    /// One that the client has sent.
    Sent,
}

/// A function that a daemon offers to one client.
pub trait ServedFunction: fmt::Debug + Send + Sync {
    /// Whether only reserved workers run it, since it refers to an object there.
    fn needs_object(&self) -> bool;

    /// Begins a call with this many bytes of arguments. They may still be arriving. Starts the call's grid if
    /// necessary. `trace`: the client's span.
    ///
    /// # Errors
    /// When a limit is reached, the function is not offered any more, or the grid cannot start.
    fn begin(&self, bytes: u64, trace: Option<TraceContext>) -> Result<Target, Denied>;
}

/// Where and how a call runs.
#[derive(Debug)]
pub struct Target {
    /// The grid.
    pub grid: Arc<Grid>,
    /// The function, as registered there.
    pub function: Arc<FunctionRef>,
    /// The owner of the call there.
    pub owner: Owner,
    /// Its options. The client adds whether it is idempotent, and its reserved worker.
    pub options: CallOptions,
    /// Permission to run it; none: it needs none.
    pub permit: Option<Box<dyn Permit>>,
    /// Whether its workers may use memory of the client: they run calls of no other user, or they and the client belong
    /// to the same user.
    pub uses_memory: bool,
}

/// A call that a client leaves to the daemon.
#[derive(Debug)]
pub struct DetachRequest<'a> {
    /// `module/function`.
    pub function: &'a str,
    /// Its arguments. If it has begun and is not idempotent, only the first section, with the values.
    pub sections: Vec<Vec<u8>>,
    /// The byte order of the numbers in them.
    pub order: Order,
    /// Whether it may run again.
    pub idempotent: bool,
    /// Whether a worker may have begun it.
    pub has_begun: bool,
}

/// A call that is stored.
pub trait DetachedEntry {
    /// Its id.
    fn id(&self) -> &str;

    /// Starts it when the limits of its user allow that.
    fn start(self: Box<Self>, target: Target);

    /// Stores the result of the call, which a grid has got.
    fn resume(self: Box<Self>, call: AcceptedCall);
}

/// A call that a grid has got, and whose client does not wait for it.
pub struct AcceptedCall {
    /// The call.
    pub call: Arc<Call>,
    /// The grid.
    pub grid: Arc<Grid>,
    /// Permission to run it, where calls need one.
    pub permit: Option<Box<dyn Permit>>,
    /// Attaches results that were left in the memory of arguments.
    pub in_place: InPlace,
}

/// Makes the sections of a result of those that a worker has sent.
pub type InPlace = Box<dyn Fn(Vec<Incoming>) -> io::Result<Vec<Incoming>> + Send + Sync>;

/// Permission for a call, a worker or shared data. It ends when it is dropped.
pub trait Permit: fmt::Debug + Send + Sync {
    /// Whether the call may go to workers now. If not, `waiting` is notified when it is worth another try.
    fn try_start(&self, waiting: &Arc<dyn Notify>) -> bool;

    /// Records how the call ended.
    fn ended(&self, end: CallEnd<'_>);
}

/// A client that waits for something to change.
pub trait Notify: fmt::Debug + Send + Sync {
    /// Something has changed. Returns at once, and takes no lock of a grid.
    fn notify(&self);
}

/// How a call ended.
#[derive(Clone, Copy, Debug)]
pub struct CallEnd<'a> {
    /// The result's bytes, or the name of the error.
    pub outcome: Result<u64, &'a str>,
    /// Its times and its worker.
    pub profile: &'a Profile,
}

/// Why a client may not do something. The program sees it as an error of its call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denied {
    /// Name of the error, as in a `Failure`.
    pub error: String,
    /// Message for people.
    pub message: String,
}
