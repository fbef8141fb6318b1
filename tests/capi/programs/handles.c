/* Handles and attributes, good and bad. */
#include "check.h"

#include <stdint.h>

static void good(void)
{
    grpc_function_handle_t one, copy, *found, many[20];
    grpc_sessionid_t id;
    int sum, sums[20];
    OK(grpc_function_handle_init(&one, "localhost", "cases/add"));
    OK(grpc_function_handle_is_ready_np(&one));
    OK(grpc_function_handle_get_error_np(&one));
    copy = one;
    OK(grpc_call(&copy, 1, 2, &sum));
    OK(grpc_call_async(&one, &id, 1, 2, &sum));
    OK(grpc_get_handle(&found, id));
    CHECK(found == &one);
    OK(grpc_function_handle_get_from_session_np(&found, id));
    CHECK(found == &one);
    OK(grpc_wait(id));
    grpc_object_handle_t_np *object;
    IS(GRPC_INVALID_SESSION_ID, grpc_object_handle_get_from_session_np(&object, id));
    OK(grpc_function_handle_destruct(&copy));
    IS(GRPC_INVALID_FUNCTION_HANDLE, grpc_get_handle(&found, id));
    IS(GRPC_INVALID_FUNCTION_HANDLE, grpc_call(&one, 1, 2, &sum));

    OK(grpc_function_handle_default(&one, "add"));
    OK(grpc_call(&one, 5, 6, &sum));
    CHECK(sum == 11);

    OK(grpc_function_handle_array_default_np(many, 20, "cases/add"));
    for (int i = 0; i < 20; i++)
        OK(grpc_call_async(&many[i], &id, i, 1, &sums[i]));
    OK(grpc_wait_all());
    for (int i = 0; i < 20; i++)
        CHECK(sums[i] == i + 1);
    OK(grpc_function_handle_array_destruct_np(many, 20));
    OK(grpc_function_handle_array_init_np(many, 3, "127.0.0.1", "cases/add"));
    OK(grpc_function_handle_destruct(&many[1]));
    IS(GRPC_INVALID_FUNCTION_HANDLE, grpc_function_handle_array_destruct_np(many, 3));
    IS(GRPC_INVALID_FUNCTION_HANDLE, grpc_call(&many[2], 1, 2, &sum));
    OK(grpc_function_handle_array_default_np(NULL, 0, "cases/add"));
    OK(grpc_function_handle_array_destruct_np(NULL, 0));
}

static void bad(void)
{
    grpc_function_handle_t handle = function("cases/add"), garbage, zero;
    grpc_function_handle_t *null = NULL;
    int sum;
    memset(&garbage, 0xA5, sizeof garbage);
    memset(&zero, 0, sizeof zero);
    grpc_function_handle_t *handles[] = {&garbage, &zero, null};
    for (int i = 0; i < 3; i++) {
        grpc_sessionid_t id;
        grpc_handle_attr_t_np attr;
        grpc_session_attr_t_np session;
        size_t count;
        IS(GRPC_INVALID_FUNCTION_HANDLE, grpc_call(handles[i], 1, 2, &sum));
        IS(GRPC_INVALID_FUNCTION_HANDLE, grpc_call_async(handles[i], &id, 1, 2, &sum));
        IS(GRPC_INVALID_FUNCTION_HANDLE, grpc_function_handle_destruct(handles[i]));
        IS(GRPC_INVALID_FUNCTION_HANDLE, grpc_function_handle_is_ready_np(handles[i]));
        IS(GRPC_INVALID_FUNCTION_HANDLE, grpc_function_handle_get_error_np(handles[i]));
        IS(GRPC_INVALID_FUNCTION_HANDLE, grpc_function_handle_perror_np(handles[i], "x"));
        IS(GRPC_INVALID_FUNCTION_HANDLE, grpc_function_handle_get_attr_np(handles[i], &attr));
        IS(GRPC_INVALID_FUNCTION_HANDLE, grpc_session_attr_initialize_np(handles[i], &session));
        IS(GRPC_INVALID_FUNCTION_HANDLE, grpc_function_parameters_np(handles[i], NULL, 0, &count));
        IS(GRPC_INVALID_OBJECT_HANDLE_NP,
           grpc_invoke_np((grpc_object_handle_t_np *)(void *)handles[i], "m"));
    }
    /* A function's handle is none of an object. */
    IS(GRPC_INVALID_OBJECT_HANDLE_NP,
       grpc_object_handle_destruct_np((grpc_object_handle_t_np *)(void *)&handle));
    IS(GRPC_INVALID_FUNCTION_HANDLE, grpc_function_handle_default(NULL, "cases/add"));
    IS(GRPC_FUNCTION_NOT_FOUND, grpc_function_handle_default(&zero, NULL));
    IS(GRPC_FUNCTION_NOT_FOUND, grpc_function_handle_default(&zero, ""));
    IS(GRPC_FUNCTION_NOT_FOUND, grpc_function_handle_default(&zero, "cases/none"));
    IS(GRPC_FUNCTION_NOT_FOUND, grpc_function_handle_default(&zero, "none/none"));
    IS(GRPC_FUNCTION_NOT_FOUND, grpc_function_handle_default(&zero, "none"));
    IS(GRPC_FUNCTION_NOT_FOUND, grpc_function_handle_default(&zero, "cases/"));
    IS(GRPC_FUNCTION_NOT_FOUND, grpc_function_handle_default(&zero, "cases/Counter"));
    IS(GRPC_FUNCTION_NOT_FOUND, grpc_function_handle_default(&zero, "cases/Counter.add"));
    IS(GRPC_SERVER_NOT_FOUND, grpc_function_handle_init(&zero, "no.such.host.invalid", "cases/add"));
    TELLS(GRPC_SESSIONID_VOID, "no.such.host.invalid");
    OK(grpc_function_handle_init(&zero, NULL, "cases/add"));
    OK(grpc_function_handle_init(&zero, "", "cases/add"));
    IS(GRPC_OTHER_ERROR_CODE, grpc_function_handle_array_default_np(&zero, SIZE_MAX, "cases/add"));

    grpc_sessionid_t none = 5;
    IS(GRPC_OTHER_ERROR_CODE, grpc_call_async(&handle, NULL, 1, 2, &sum));
    IS(GRPC_OTHER_ERROR_CODE, grpc_call_with_attr_np(&handle, NULL, 1, 2, &sum));
    IS(GRPC_OTHER_ERROR_CODE, grpc_call_async_with_attr_np(&handle, &none, NULL, 1, 2, &sum));
    CHECK(none == GRPC_SESSIONID_VOID);
    IS(GRPC_OTHER_ERROR_CODE, grpc_call(&handle, 1, 2, NULL));
    IS(GRPC_OTHER_ERROR_CODE, grpc_function_handle_get_error_np(&handle));
    OK(grpc_function_handle_perror_np(&handle, "as expected"));
    OK(grpc_call(&handle, 1, 2, &sum));
    OK(grpc_function_handle_get_error_np(&handle));
    IS(GRPC_INVALID_SESSION_ID, grpc_get_handle(NULL, GRPC_SESSIONID_VOID));
}

static void attributes(void)
{
    grpc_handle_attr_t_np attr, of;
    grpc_function_handle_t handle, two[2];
    int seven = 7, minus = -1, minus2 = -2, sum;
    void *value;
    OK(grpc_handle_attr_initialize_np(&attr));
    IS(GRPC_FUNCTION_NOT_FOUND, grpc_function_handle_init_with_attr_np(&handle, &attr));
    OK(grpc_handle_attr_get_np(&attr, GRPC_HANDLE_ATTR_HOSTNAME, &value));
    CHECK(value == NULL);
    OK(grpc_handle_attr_set_np(&attr, GRPC_HANDLE_ATTR_HOSTNAME, "localhost"));
    OK(grpc_handle_attr_set_np(&attr, GRPC_HANDLE_ATTR_FUNCNAME, "cases/add"));
    OK(grpc_handle_attr_set_np(&attr, GRPC_HANDLE_ATTR_JOBMANAGER, "any"));
    OK(grpc_handle_attr_set_np(&attr, GRPC_HANDLE_ATTR_PORT, &seven));
    OK(grpc_handle_attr_set_np(&attr, GRPC_HANDLE_ATTR_JOBSTARTTIMEOUT, &seven));
    IS(GRPC_OTHER_ERROR_CODE,
       grpc_handle_attr_set_np(&attr, GRPC_HANDLE_ATTR_JOBSTARTTIMEOUT, &minus));
    OK(grpc_handle_attr_set_np(&attr, GRPC_HANDLE_ATTR_JOBSTOPTIMEOUT, &minus));
    IS(GRPC_OTHER_ERROR_CODE,
       grpc_handle_attr_set_np(&attr, GRPC_HANDLE_ATTR_JOBSTOPTIMEOUT, &minus2));
    IS(GRPC_OTHER_ERROR_CODE,
       grpc_handle_attr_set_np(&attr, GRPC_HANDLE_ATTR_WAIT_ARG_TRANSFER, &seven));
    IS(GRPC_OTHER_ERROR_CODE,
       grpc_handle_attr_set_np(&attr, (grpc_handle_attr_name_t_np)99, &seven));
    OK(grpc_handle_attr_get_np(&attr, GRPC_HANDLE_ATTR_HOSTNAME, &value));
    CHECK(strcmp(value, "localhost") == 0);
    OK(grpc_handle_attr_release_np(value));
    OK(grpc_handle_attr_release_np(NULL));
    OK(grpc_function_handle_init_with_attr_np(&handle, &attr));
    OK(grpc_function_handle_array_init_with_attr_np(two, 2, &attr));
    OK(grpc_call(&two[1], 1, 2, &sum));
    OK(grpc_function_handle_get_attr_np(&handle, &of));
    OK(grpc_handle_attr_get_np(&of, GRPC_HANDLE_ATTR_JOBSTARTTIMEOUT, &value));
    CHECK(*(int *)value == 7);
    OK(grpc_handle_attr_release_np(value));
    OK(grpc_handle_attr_destruct_np(&of));
    OK(grpc_handle_attr_destruct_np(&attr));
    IS(GRPC_OTHER_ERROR_CODE, grpc_handle_attr_destruct_np(&attr));
    IS(GRPC_OTHER_ERROR_CODE, grpc_handle_attr_destruct_np(NULL));
    IS(GRPC_OTHER_ERROR_CODE, grpc_handle_attr_initialize_np(NULL));
    IS(GRPC_OTHER_ERROR_CODE, grpc_function_handle_init_with_attr_np(&handle, &attr));
    IS(GRPC_OTHER_ERROR_CODE, grpc_function_handle_init_with_attr_np(&handle, NULL));

    grpc_session_attr_t_np session;
    grpc_argument_transfer_t_np copy = GRPC_ARGUMENT_TRANSFER_COPY;
    OK(grpc_session_attr_initialize_np(&handle, &session));
    OK(grpc_session_attr_set_np(&session, GRPC_SESSION_ATTR_SESSION_TIMEOUT, &seven));
    IS(GRPC_OTHER_ERROR_CODE,
       grpc_session_attr_set_np(&session, GRPC_SESSION_ATTR_SESSION_TIMEOUT, &minus));
    OK(grpc_session_attr_set_np(&session, GRPC_SESSION_ATTR_WAIT_ARG_TRANSFER, &copy));
    OK(grpc_session_attr_get_np(&session, GRPC_SESSION_ATTR_SESSION_TIMEOUT, &value));
    CHECK(*(int *)value == 7);
    OK(grpc_session_attr_release_np(value));
    OK(grpc_call_with_attr_np(&handle, &session, 1, 2, &sum));
    OK(grpc_session_attr_destruct_np(&session));
    IS(GRPC_OTHER_ERROR_CODE, grpc_call_with_attr_np(&handle, &session, 1, 2, &sum));
    IS(GRPC_OTHER_ERROR_CODE,
       grpc_session_attr_set_np(&session, GRPC_SESSION_ATTR_SESSION_TIMEOUT, &seven));
}

static void parameters(void)
{
    grpc_function_handle_t handle = function("cases/join"), tick = function("cases/tick");
    grpc_parameter_np list[3];
    size_t count = 0;
    OK(grpc_function_parameters_np(&handle, NULL, 0, &count));
    CHECK(count == 3);
    OK(grpc_function_parameters_np(&handle, list, 2, &count));
    CHECK(count == 3 && strcmp(list[1].name, "parts") == 0);
    CHECK(list[1].type == GRPC_TYPE_STRING_NP && list[1].mode == GRPC_MODE_IN_NP);
    CHECK(list[1].is_array && !list[1].is_callback && !list[0].is_array);
    OK(grpc_function_parameters_np(&tick, list, 3, &count));
    CHECK(count == 2 && list[1].is_callback && list[1].type == GRPC_TYPE_NONE_NP);
    IS(GRPC_OTHER_ERROR_CODE, grpc_function_parameters_np(&handle, NULL, 2, &count));
    IS(GRPC_OTHER_ERROR_CODE, grpc_function_parameters_np(&handle, list, 2, NULL));
}

int main(void)
{
    OK(grpc_initialize(NULL));
    good();
    bad();
    attributes();
    parameters();
    OK(grpc_finalize());
    return 0;
}
