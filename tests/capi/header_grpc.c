/*
 * Does grpc.h stand alone, and do programs compile that were written for Ninf-G? Compiled as C99,
 * C11 and C++17 with all warnings as errors.
 */
#include <grpc.h>

#include <stdio.h>

/* Old programs have their texts in variables that are not const. */
static char config_file[] = "client.conf";
static char function_name[] = "sample/mmul";
static char method_name[] = "method";

static double callback_called;

static void callback(double *value)
{
    callback_called = *value;
}

static void on_signal(int number)
{
    (void)number;
}

static grpc_error_t attributes(void)
{
    grpc_handle_attr_t_np attr;
    grpc_function_handle_t handle;
    grpc_session_attr_t_np session_attr;
    grpc_argument_transfer_t_np transfer = GRPC_ARGUMENT_TRANSFER_NOWAIT;
    void *value = NULL;
    int seconds = 30;
    grpc_error_t error = grpc_handle_attr_initialize_np(&attr);
    if (error != GRPC_NO_ERROR)
        return error;
    grpc_handle_attr_set_np(&attr, GRPC_HANDLE_ATTR_HOSTNAME, "localhost");
    grpc_handle_attr_set_np(&attr, GRPC_HANDLE_ATTR_FUNCNAME, function_name);
    grpc_handle_attr_set_np(&attr, GRPC_HANDLE_ATTR_JOBSTARTTIMEOUT, &seconds);
    grpc_handle_attr_set_np(&attr, GRPC_HANDLE_ATTR_WAIT_ARG_TRANSFER, &transfer);
    grpc_handle_attr_get_np(&attr, GRPC_HANDLE_ATTR_HOSTNAME, &value);
    grpc_handle_attr_release_np(value);
    grpc_function_handle_init_with_attr_np(&handle, &attr);
    grpc_handle_attr_destruct_np(&attr);
    grpc_session_attr_initialize_np(&handle, &session_attr);
    grpc_session_attr_set_np(&session_attr, GRPC_SESSION_ATTR_SESSION_TIMEOUT, &seconds);
    error = grpc_call_with_attr_np(&handle, &session_attr, 1, 2.0, callback);
    grpc_session_attr_destruct_np(&session_attr);
    return error;
}

static void information(grpc_sessionid_t id)
{
    grpc_session_info_t_np *info;
    grpc_exec_info_t_np old;
    int status;
    if (grpc_session_info_get_np(id, &info, &status) == GRPC_NO_ERROR) {
        printf("%d %ld %ld\n", status == GRPC_SESSION_DONE,
               (long)info->gei_measureClient.calculationRealTime.tv_sec,
               (long)info->gei_measureExecutable.callbackCalculationCpuTime.tv_usec);
        grpc_session_info_release_np(info);
    }
    if (grpc_get_info_np(id, &old, &status) == GRPC_NO_ERROR)
        printf("%ld %ld %d\n", (long)old.gei_measureExecutable.executableRealTime.tv_sec,
               (long)old.gei_measureClient.transferArgumentRealTime.tv_sec,
               status == GRPC_SESSION_ARG_IS_NOT_TRANSMITED);
}

int main(void)
{
    grpc_function_handle_t handles[4], *found;
    grpc_object_handle_t_np object;
    grpc_sessionid_t ids[4], id;
    grpc_arg_stack_t *stack;
    grpc_parameter_np parameters[8];
    size_t count;
    double *array;
    int n = 2;

    if (grpc_initialize(config_file) != GRPC_NO_ERROR)
        grpc_perror_np("grpc_initialize");
    grpc_signal_handler_set_np(15, on_signal);
    grpc_function_handle_array_init_np(handles, 4, "localhost", function_name);
    array = (double *)grpc_malloc_np(4 * sizeof *array);
    grpc_call(&handles[0], n, array, array);
    grpc_call_async(&handles[0], &ids[0], n, array, array);
    grpc_wait_and(ids, 1);
    grpc_wait_or(ids, 1, &id);
    grpc_probe_or(ids, 1, &id);
    while (grpc_wait_any(&id) == GRPC_NO_ERROR && id != GRPC_SESSIONID_VOID)
        grpc_get_handle(&found, id);
    while (grpc_get_failed_sessionid(&id) == GRPC_NO_ERROR && id != GRPC_SESSIONID_VOID)
        puts(grpc_error_string(grpc_get_error(id)));
    information(id);
    grpc_free_np(array);

    grpc_object_handle_default_np(&object, "sample/counter");
    grpc_invoke_np(&object, method_name, n);
    grpc_invoke_async_np(&object, "method", &id, n);
    grpc_cancel(id);
    grpc_object_handle_destruct_np(&object);

    stack = grpc_arg_stack_new(3);
    grpc_arg_stack_push_arg(stack, &n);
    grpc_arg_stack_pop_arg(stack);
    grpc_stack_push(stack, &n);
    id = grpc_call_arg_stack_async(&handles[0], stack);
    grpc_call_argstack(&handles[0], stack);
    grpc_stack_destruct(stack);

    grpc_function_parameters_np(&handles[0], parameters, 8, &count);
    puts(grpc_error_detail_np(id));
    grpc_function_handle_array_destruct_np(handles, 4);
    attributes();
    switch (grpc_finalize()) {
    case GRPC_NO_ERROR:
        break;
    case GRPC_NOT_INITIALIZED:
        puts("not initialized");
    }
    return 0;
}
