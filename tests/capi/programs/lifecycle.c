/* Before the beginning, after the end, twice, without an end, and after a fork. */
#include "check.h"

#include <ninf.h>
#include <signal.h>
#include <sys/wait.h>

static grpc_function_handle_t handle;
static grpc_object_handle_t_np object;

/* Every function that needs the library to be initialized. */
static void nothing_works(void)
{
    grpc_handle_attr_t_np attr;
    grpc_session_attr_t_np session;
    grpc_function_handle_t *function_of;
    grpc_object_handle_t_np *object_of;
    grpc_session_info_t_np info, *copy;
    grpc_sessionid_t id = 0;
    size_t count;
    void *value;
    int status;
    grpc_arg_stack_t *stack = grpc_arg_stack_new(1);
#define NOT(call) IS(GRPC_NOT_INITIALIZED, call)
    NOT(grpc_finalize());
    NOT(grpc_config_file_read_np(NULL));
    NOT(grpc_function_handle_default(&handle, "cases/add"));
    NOT(grpc_function_handle_init(&handle, "localhost", "cases/add"));
    NOT(grpc_function_handle_init_with_attr_np(&handle, &attr));
    NOT(grpc_function_handle_destruct(&handle));
    NOT(grpc_function_handle_array_default_np(&handle, 1, "cases/add"));
    NOT(grpc_function_handle_array_init_np(&handle, 1, "localhost", "cases/add"));
    NOT(grpc_function_handle_array_init_with_attr_np(&handle, 1, &attr));
    NOT(grpc_function_handle_array_destruct_np(&handle, 1));
    NOT(grpc_get_handle(&function_of, 0));
    NOT(grpc_function_handle_get_from_session_np(&function_of, 0));
    NOT(grpc_function_handle_get_attr_np(&handle, &attr));
    NOT(grpc_function_handle_get_error_np(&handle));
    NOT(grpc_function_handle_perror_np(&handle, ""));
    NOT(grpc_function_handle_is_ready_np(&handle));
    NOT(grpc_function_parameters_np(&handle, NULL, 0, &count));
    NOT(grpc_object_handle_default_np(&object, "cases/Plain"));
    NOT(grpc_object_handle_init_np(&object, "localhost", "cases/Plain"));
    NOT(grpc_object_handle_init_with_attr_np(&object, &attr));
    NOT(grpc_object_handle_destruct_np(&object));
    NOT(grpc_object_handle_array_default_np(&object, 1, "cases/Plain"));
    NOT(grpc_object_handle_array_init_np(&object, 1, "localhost", "cases/Plain"));
    NOT(grpc_object_handle_array_init_with_attr_np(&object, 1, &attr));
    NOT(grpc_object_handle_array_destruct_np(&object, 1));
    NOT(grpc_object_handle_get_from_session_np(&object_of, 0));
    NOT(grpc_object_handle_get_attr_np(&object, &attr));
    NOT(grpc_object_handle_get_error_np(&object));
    NOT(grpc_object_handle_perror_np(&object, ""));
    NOT(grpc_object_handle_is_ready_np(&object));
    NOT(grpc_method_parameters_np(&object, "twice", NULL, 0, &count));
    NOT(grpc_handle_attr_initialize_np(&attr));
    NOT(grpc_handle_attr_destruct_np(&attr));
    NOT(grpc_handle_attr_get_np(&attr, GRPC_HANDLE_ATTR_HOSTNAME, &value));
    NOT(grpc_handle_attr_set_np(&attr, GRPC_HANDLE_ATTR_HOSTNAME, "x"));
    NOT(grpc_handle_attr_release_np(NULL));
    NOT(grpc_session_attr_initialize_np(&handle, &session));
    NOT(grpc_session_attr_initialize_with_object_handle_np(&object, &session));
    NOT(grpc_session_attr_destruct_np(&session));
    NOT(grpc_session_attr_get_np(&session, GRPC_SESSION_ATTR_SESSION_TIMEOUT, &value));
    NOT(grpc_session_attr_set_np(&session, GRPC_SESSION_ATTR_SESSION_TIMEOUT, &status));
    NOT(grpc_session_attr_release_np(NULL));
    NOT(grpc_call(&handle, 1, 2, &status));
    NOT(grpc_call_async(&handle, &id, 1, 2, &status));
    NOT(grpc_call_with_attr_np(&handle, &session, 1, 2, &status));
    NOT(grpc_call_async_with_attr_np(&handle, &id, &session, 1, 2, &status));
    NOT(grpc_invoke_np(&object, "twice", 1, &status));
    NOT(grpc_invoke_async_np(&object, "twice", &id, 1, &status));
    NOT(grpc_invoke_with_attr_np(&object, "twice", &session, 1, &status));
    NOT(grpc_invoke_async_with_attr_np(&object, "twice", &id, &session, 1, &status));
    NOT(grpc_call_arg_stack(&handle, stack));
    NOT(grpc_call_arg_stack_with_attr_np(&handle, &session, stack));
    NOT(grpc_invoke_arg_stack_np(&object, "twice", stack));
    NOT(grpc_invoke_arg_stack_with_attr_np(&object, "twice", &session, stack));
    NOT(grpc_call_argstack_async(&handle, &id, stack));
    NOT(grpc_invoke_argstack_async_np(&object, "twice", &id, stack));
    IS(GRPC_SESSIONID_VOID, grpc_call_arg_stack_async(&handle, stack));
    IS(GRPC_SESSIONID_VOID, grpc_call_arg_stack_async_with_attr_np(&handle, &session, stack));
    IS(GRPC_SESSIONID_VOID, grpc_invoke_arg_stack_async_np(&object, "twice", stack));
    IS(GRPC_SESSIONID_VOID,
       grpc_invoke_arg_stack_async_with_attr_np(&object, "twice", &session, stack));
    NOT(grpc_last_error_get_np());
    NOT(grpc_cancel(0));
    NOT(grpc_cancel_all());
    NOT(grpc_probe(0));
    NOT(grpc_probe_or(&id, 1, &id));
    NOT(grpc_wait(0));
    NOT(grpc_wait_and(&id, 1));
    NOT(grpc_wait_or(&id, 1, &id));
    NOT(grpc_wait_all());
    NOT(grpc_wait_any(&id));
    NOT(grpc_get_error(0));
    NOT(grpc_get_failed_sessionid(&id));
    NOT(grpc_session_info_get_np(0, &copy, &status));
    NOT(grpc_session_info_release_np(NULL));
    NOT(grpc_session_info_remove_np(0));
    NOT(grpc_session_info_set_threshold_np(1));
    NOT(grpc_get_info_np(0, &info, &status));
    NOT(grpc_get_last_info_np(&info, &status));
    NOT(grpc_signal_handler_set_np(SIGUSR1, SIG_IGN));
    TELLS(0, "initialize");
    grpc_arg_stack_destruct(stack);
    OK(grpc_perror_np("as expected"));
}

static void in_a_child(void)
{
    int status, sum;
    pid_t child = fork();
    if (child == 0) {
        alarm(20);
        nothing_works();
        TELLS(GRPC_SESSIONID_VOID, "fork");
        OK(grpc_initialize(NULL));
        handle = function("cases/add");
        OK(grpc_call(&handle, 1, 2, &sum));
        OK(grpc_finalize());
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(int argc, char **argv)
{
    int sum = 0;
    grpc_sessionid_t id;
    if (argc > 1 && strcmp(argv[1], "no end") == 0) {
        OK(grpc_initialize(NULL));
        grpc_function_handle_t nap = function("cases/nap");
        OK(grpc_call_async(&nap, &id, 60.0));
        pause_for(0.1);
        grpc_session_info_t_np info;
        OK(grpc_get_info_np(id, &info, NULL));
        printf("%ld\n", info.gei_place.processId);
        return 0;
    }
    nothing_works();
    IS(GRPC_CONFIGFILE_NOT_FOUND, grpc_initialize("no such file"));
    nothing_works();
    for (int i = 0; i < 3; i++) {
        OK(grpc_initialize(NULL));
        IS(GRPC_ALREADY_INITIALIZED, grpc_initialize(NULL));
        handle = function("cases/add");
        OK(grpc_object_handle_default_np(&object, "cases/Plain"));
        OK(grpc_call(&handle, 20, 22, &sum));
        CHECK(sum == 42);
        if (i == 1)
            in_a_child();
        OK(grpc_call(&handle, 20, 2, &sum));
        grpc_function_handle_t nap = function("cases/nap");
        OK(grpc_call_async(&nap, &id, 60.0));
        double begin = now();
        OK(grpc_finalize());
        CHECK(now() - begin < 5);
        nothing_works();
    }
    /* Handles of another time are none. */
    OK(grpc_initialize(""));
    IS(GRPC_INVALID_FUNCTION_HANDLE, grpc_call(&handle, 1, 2, &sum));
    IS(GRPC_INVALID_OBJECT_HANDLE_NP, grpc_invoke_np(&object, "twice", 1, &sum));
    IS(GRPC_INVALID_SESSION_ID, grpc_wait(id));
    OK(grpc_finalize());
    return 0;
}
