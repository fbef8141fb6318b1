/* Objects: state, methods in order, losses, begin and end. */
#include "check.h"

#include <sys/stat.h>

int main(void)
{
    grpc_object_handle_t_np counter, others[5], plain, bad, *found;
    grpc_sessionid_t id, ids[50];
    int value, values[50], pids[5];
    OK(grpc_initialize(NULL));
    OK(grpc_object_handle_default_np(&counter, "cases/Counter"));
    OK(grpc_object_handle_is_ready_np(&counter));
    OK(grpc_object_handle_get_error_np(&counter));
    OK(grpc_invoke_np(&counter, "get", &value));
    CHECK(value == 100);
    for (int i = 0; i < 50; i++)
        OK(grpc_invoke_async_np(&counter, "add", &ids[i], 1, &values[i]));
    OK(grpc_object_handle_get_from_session_np(&found, ids[0]));
    CHECK(found == &counter);
    OK(grpc_wait_all());
    for (int i = 0; i < 50; i++)
        CHECK(values[i] == 101 + i);
    grpc_function_handle_t *function;
    IS(GRPC_INVALID_SESSION_ID, grpc_get_handle(&function, ids[49]));

    grpc_arg_stack_t *stack = grpc_arg_stack_new(1);
    grpc_session_attr_t_np attr;
    grpc_arg_stack_push_arg(stack, &value);
    OK(grpc_session_attr_initialize_with_object_handle_np(&counter, &attr));
    OK(grpc_invoke_arg_stack_np(&counter, "get", stack));
    CHECK(value == 150);
    OK(grpc_invoke_arg_stack_with_attr_np(&counter, "get", &attr, stack));
    OK(grpc_wait(grpc_invoke_arg_stack_async_np(&counter, "get", stack)));
    OK(grpc_wait(grpc_invoke_arg_stack_async_with_attr_np(&counter, "get", &attr, stack)));
    OK(grpc_invoke_argstack_async_np(&counter, "get", &id, stack));
    OK(grpc_wait(id));
    OK(grpc_invoke_with_attr_np(&counter, "get", &attr, &value));
    OK(grpc_invoke_async_with_attr_np(&counter, "get", &id, &attr, &value));
    OK(grpc_wait(id));
    grpc_arg_stack_destruct(stack);

    grpc_parameter_np parameter;
    size_t count;
    OK(grpc_method_parameters_np(&counter, "nap", &parameter, 1, &count));
    CHECK(count == 1 && parameter.type == GRPC_TYPE_DOUBLE_NP);
    IS(GRPC_FUNCTION_NOT_FOUND, grpc_method_parameters_np(&counter, "x", &parameter, 1, &count));
    IS(GRPC_FUNCTION_NOT_FOUND, grpc_invoke_np(&counter, "nonsense"));
    IS(GRPC_OTHER_ERROR_CODE, grpc_invoke_np(&counter, NULL));

    /* An array is as many workers. */
    OK(grpc_object_handle_array_default_np(others, 5, "cases/Counter"));
    for (int i = 0; i < 5; i++) {
        OK(grpc_invoke_np(&others[i], "pid", &pids[i]));
        for (int j = 0; j < i; j++)
            CHECK(pids[i] != pids[j]);
    }
    OK(grpc_invoke_np(&others[1], "add", 5, &value));
    CHECK(value == 105);
    OK(grpc_invoke_np(&others[2], "get", &value));
    CHECK(value == 100);

    /* What is lost stays lost. */
    IS(GRPC_COMMUNICATION_FAILED, grpc_invoke_np(&others[0], "die"));
    TELLS(GRPC_SESSIONID_VOID, "SIGABRT");
    IS(GRPC_COMMUNICATION_FAILED, grpc_invoke_np(&others[0], "get", &value));
    IS(GRPC_COMMUNICATION_FAILED, grpc_object_handle_is_ready_np(&others[0]));
    IS(GRPC_COMMUNICATION_FAILED, grpc_object_handle_get_error_np(&others[0]));
    OK(grpc_object_handle_perror_np(&others[0], "as expected"));
    OK(grpc_object_handle_array_destruct_np(others, 5));
    IS(GRPC_INVALID_OBJECT_HANDLE_NP, grpc_invoke_np(&others[1], "get", &value));
    IS(GRPC_INVALID_OBJECT_HANDLE_NP, grpc_object_handle_destruct_np(&others[1]));

    OK(grpc_object_handle_init_np(&plain, "localhost", "cases/Plain"));
    OK(grpc_invoke_np(&plain, "twice", 21, &value));
    CHECK(value == 42);
    OK(grpc_object_handle_array_init_np(others, 2, "localhost", "Plain"));
    grpc_handle_attr_t_np handle_attr;
    OK(grpc_object_handle_get_attr_np(&plain, &handle_attr));
    OK(grpc_object_handle_init_with_attr_np(&bad, &handle_attr));
    OK(grpc_invoke_np(&bad, "twice", 4, &value));
    OK(grpc_object_handle_array_init_with_attr_np(&others[2], 2, &handle_attr));
    OK(grpc_object_handle_array_destruct_np(others, 4));

    IS(GRPC_CLASS_NOT_FOUND_NP, grpc_object_handle_default_np(&bad, "cases/None"));
    IS(GRPC_CLASS_NOT_FOUND_NP, grpc_object_handle_default_np(&bad, "none/None"));
    IS(GRPC_CLASS_NOT_FOUND_NP, grpc_object_handle_default_np(&bad, NULL));
    IS(GRPC_COMMUNICATION_FAILED, grpc_object_handle_default_np(&bad, "cases/Broken"));
    TELLS(GRPC_SESSIONID_VOID, "status 3");
    IS(GRPC_INVALID_OBJECT_HANDLE_NP, grpc_object_handle_default_np(NULL, "cases/Plain"));
    IS(GRPC_INVALID_OBJECT_HANDLE_NP, grpc_object_handle_destruct_np(NULL));
    IS(GRPC_INVALID_OBJECT_HANDLE_NP, grpc_object_handle_is_ready_np(NULL));
    IS(GRPC_INVALID_OBJECT_HANDLE_NP, grpc_object_handle_get_attr_np(NULL, &handle_attr));
    IS(GRPC_INVALID_OBJECT_HANDLE_NP,
       grpc_session_attr_initialize_with_object_handle_np(NULL, &attr));

    /* Ends in time, also while a method runs; `_finalize` has made the file. */
    struct stat state;
    double begin = now();
    remove(getenv("COUNTER_FILE"));
    OK(grpc_object_handle_destruct_np(&plain));
    OK(grpc_object_handle_default_np(&plain, "cases/Counter"));
    OK(grpc_object_handle_destruct_np(&plain));
    CHECK(stat(getenv("COUNTER_FILE"), &state) == 0);
    OK(grpc_invoke_async_np(&counter, "nap", &id, 60.0));
    OK(grpc_object_handle_destruct_np(&counter));
    IS(GRPC_SESSION_FAILED, grpc_wait(id));
    IS(GRPC_CANCELED_NP, grpc_get_error(id));
    CHECK(now() - begin < 10);
    OK(grpc_finalize());
    return 0;
}
