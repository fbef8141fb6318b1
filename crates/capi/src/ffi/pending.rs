//! Functions that are declared and not there yet. They say that nothing is initialized, which so
//! far is true.

use std::ffi::{c_char, c_int, c_void};
use std::ptr;

use super::types::Handle;
use super::{guard, report};
use crate::errors::ErrorCode;

fn not_initialized<T>(result: T) -> T {
    report::note(ErrorCode::NotInitialized, "");
    result
}

macro_rules! pending {
    ($failed:expr, $result:ty: $($name:ident($($argument:ty),*);)*) => {$(
        #[unsafe(no_mangle)]
        extern "C" fn $name($(_: $argument),*) -> $result {
            guard($failed, || not_initialized($failed))
        }
    )*};
}

pending! {
    ErrorCode::NotInitialized as c_int, c_int:
    grpc_initialize(*const c_char);
    grpc_finalize();
    grpc_config_file_read_np(*const c_char);
    grpc_function_handle_default(*mut Handle, *const c_char);
    grpc_function_handle_init(*mut Handle, *const c_char, *const c_char);
    grpc_function_handle_init_with_attr_np(*mut Handle, *mut Handle);
    grpc_function_handle_destruct(*mut Handle);
    grpc_function_handle_array_default_np(*mut Handle, usize, *const c_char);
    grpc_function_handle_array_init_np(*mut Handle, usize, *const c_char, *const c_char);
    grpc_function_handle_array_init_with_attr_np(*mut Handle, usize, *mut Handle);
    grpc_function_handle_array_destruct_np(*mut Handle, usize);
    grpc_get_handle(*mut *mut Handle, c_int);
    grpc_function_handle_get_from_session_np(*mut *mut Handle, c_int);
    grpc_function_handle_get_attr_np(*mut Handle, *mut Handle);
    grpc_function_handle_get_error_np(*mut Handle);
    grpc_function_handle_perror_np(*mut Handle, *const c_char);
    grpc_function_handle_is_ready_np(*mut Handle);
    grpc_object_handle_default_np(*mut Handle, *const c_char);
    grpc_object_handle_init_np(*mut Handle, *const c_char, *const c_char);
    grpc_object_handle_init_with_attr_np(*mut Handle, *mut Handle);
    grpc_object_handle_destruct_np(*mut Handle);
    grpc_object_handle_array_default_np(*mut Handle, usize, *const c_char);
    grpc_object_handle_array_init_np(*mut Handle, usize, *const c_char, *const c_char);
    grpc_object_handle_array_init_with_attr_np(*mut Handle, usize, *mut Handle);
    grpc_object_handle_array_destruct_np(*mut Handle, usize);
    grpc_object_handle_get_from_session_np(*mut *mut Handle, c_int);
    grpc_object_handle_get_attr_np(*mut Handle, *mut Handle);
    grpc_object_handle_get_error_np(*mut Handle);
    grpc_object_handle_perror_np(*mut Handle, *const c_char);
    grpc_object_handle_is_ready_np(*mut Handle);
    grpc_handle_attr_initialize_np(*mut Handle);
    grpc_handle_attr_destruct_np(*mut Handle);
    grpc_handle_attr_get_np(*mut Handle, c_int, *mut *mut c_void);
    grpc_handle_attr_set_np(*mut Handle, c_int, *const c_void);
    grpc_handle_attr_release_np(*mut c_void);
    grpc_session_attr_initialize_np(*mut Handle, *mut Handle);
    grpc_session_attr_initialize_with_object_handle_np(*mut Handle, *mut Handle);
    grpc_session_attr_destruct_np(*mut Handle);
    grpc_session_attr_get_np(*mut Handle, c_int, *mut *mut c_void);
    grpc_session_attr_set_np(*mut Handle, c_int, *const c_void);
    grpc_session_attr_release_np(*mut c_void);
    grpc_call_arg_stack(*mut Handle, *mut c_void);
    grpc_call_arg_stack_with_attr_np(*mut Handle, *mut Handle, *mut c_void);
    grpc_invoke_arg_stack_np(*mut Handle, *const c_char, *mut c_void);
    grpc_invoke_arg_stack_with_attr_np(*mut Handle, *const c_char, *mut Handle, *mut c_void);
    grpc_cancel(c_int);
    grpc_cancel_all();
    grpc_probe(c_int);
    grpc_probe_or(*const c_int, usize, *mut c_int);
    grpc_wait(c_int);
    grpc_wait_and(*const c_int, usize);
    grpc_wait_or(*const c_int, usize, *mut c_int);
    grpc_wait_all();
    grpc_wait_any(*mut c_int);
    grpc_get_error(c_int);
    grpc_get_failed_sessionid(*mut c_int);
    grpc_session_info_get_np(c_int, *mut *mut c_void, *mut c_int);
    grpc_session_info_release_np(*mut c_void);
    grpc_session_info_remove_np(c_int);
    grpc_session_info_set_threshold_np(c_int);
    grpc_get_info_np(c_int, *mut c_void, *mut c_int);
    grpc_get_last_info_np(*mut c_void, *mut c_int);
    grpc_signal_handler_set_np(c_int, Option<unsafe extern "C" fn(c_int)>);
    grpc_function_parameters_np(*mut Handle, *mut c_void, usize, *mut usize);
    grpc_method_parameters_np(*mut Handle, *const c_char, *mut c_void, usize, *mut usize);
    grpc_free_np(*mut c_void);
    grpc_call_argstack_async(*mut Handle, *mut c_int, *mut c_void);
    grpc_invoke_argstack_async_np(*mut Handle, *const c_char, *mut c_int, *mut c_void);
}

pending! {
    -1, c_int:
    grpc_call_arg_stack_async(*mut Handle, *mut c_void);
    grpc_call_arg_stack_async_with_attr_np(*mut Handle, *mut Handle, *mut c_void);
    grpc_invoke_arg_stack_async_np(*mut Handle, *const c_char, *mut c_void);
    grpc_invoke_arg_stack_async_with_attr_np(*mut Handle, *const c_char, *mut Handle, *mut c_void);
    Ninf_set_server(*const c_char, c_int);
    Ninf_parse_arg(c_int, *mut *mut c_char);
    Ninf_call_v(*const c_char, usize, *mut *mut c_void);
    Ninf_call_v_async(*const c_char, usize, *mut *mut c_void);
    Ninf_executable_finalize(*mut c_void);
    Ninf_group_init(*const c_char);
    Ninf_group_wait_all(c_int);
    Ninf_group_finalize(c_int);
    Ninf_wait(c_int);
    Ninf_wait_all();
    Ninf_wait_any(*mut c_int);
    Ninf_wait_and(*const c_int, c_int);
    Ninf_wait_or(*const c_int, c_int, *mut c_int);
    Ninf_session_probe(c_int);
    Ninf_session_cancel(c_int);
    Ninf_session_remove(c_int);
}

pending! {
    ptr::null_mut(), *mut c_void:
    grpc_malloc_np(usize);
    Ninf_get_executable(*const c_char);
}

pending! {
    ptr::null(), *const c_void:
    Ninf_get_info(c_int);
    Ninf_get_last_info();
}
