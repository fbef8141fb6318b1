//! Objects of the Python package that the native module uses. It refers to no others by name.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

macro_rules! from_package {
    ($($function:ident: $module:literal, $name:literal;)*) => {
        $(pub fn $function(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
            static FOUND: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
            FOUND.import(py, $module, $name)
        })*
    };
}

from_package! {
    // Exceptions, which errors.rs raises.
    argument_error: "gridrpc.errors", "ArgumentError";
    call_cancelled: "gridrpc._cancelled", "CallCancelled";
    config_error: "gridrpc.errors", "ConfigError";
    deadline_exceeded: "gridrpc.errors", "DeadlineExceeded";
    dependency_failed: "gridrpc.errors", "DependencyFailed";
    function_not_found: "gridrpc.errors", "FunctionNotFound";
    interface_changed: "gridrpc.errors", "InterfaceChanged";
    grid_closed: "gridrpc.errors", "GridClosed";
    limit_reached: "gridrpc.errors", "LimitReached";
    not_permitted: "gridrpc.errors", "NotPermitted";
    nesting_error: "gridrpc.errors", "NestingError";
    object_lost: "gridrpc.errors", "ObjectLost";
    protocol_error: "gridrpc.errors", "ProtocolError";
    remote_error: "gridrpc.errors", "RemoteError";
    remote_traceback: "gridrpc.errors", "RemoteTraceback";
    not_trusted: "gridrpc.errors", "NotTrusted";
    server_not_found: "gridrpc.errors", "ServerNotFound";
    start_error: "gridrpc.errors", "StartError";
    too_wide: "gridrpc.errors", "TooFewCores";
    unfit: "gridrpc.errors", "TooFewResources";
    worker_lost: "gridrpc.errors", "WorkerLost";
    ranks_lost: "gridrpc.errors", "RanksLost";
    // Parts of a call that are implemented in Python.
    cancel: "gridrpc._call", "cancel";
    cancelled: "gridrpc._call", "cancelled";
    output_of: "gridrpc._call", "output_of";
    reduce: "gridrpc._dataflow", "reduce";
    profile_of: "gridrpc._call", "profile_of";
    add_done_callback: "gridrpc._call", "add_done_callback";
    wait_async: "gridrpc._call", "wait_async";
    describe: "gridrpc._call", "describe";
    follower: "gridrpc._call", "follower";
    call_html: "gridrpc._notebook", "call_html";
    // Several results of a module's function, and of many items.
    named_results: "gridrpc._modules", "named_results";
    many_named_results: "gridrpc._modules", "many_named_results";
    // Callable for a function with many items.
    chunked: "gridrpc._chunks", "Chunked";
    // An exception as it is sent.
    describe_error: "gridrpc._chunks", "describe";
    // Shared data, and results of calls, among the arguments of a module's function.
    shared: "gridrpc._shared", "Shared";
    call: "gridrpc._native", "Call";
    call_output: "gridrpc._dataflow", "CallOutput";
}
