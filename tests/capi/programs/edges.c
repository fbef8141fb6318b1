/* What the standard and Ninf-G say of rare cases, and what went wrong in Ninf-G. */
#include "check.h"

#include <limits.h>
#include <pthread.h>

static grpc_function_handle_t add, nap, leave, scale;

static void codes(void)
{
    const int numbers[] = {
        GRPC_NO_ERROR,
        GRPC_NOT_INITIALIZED,
        GRPC_ALREADY_INITIALIZED,
        GRPC_CONFIGFILE_NOT_FOUND,
        GRPC_CONFIGFILE_ERROR,
        GRPC_SERVER_NOT_FOUND,
        GRPC_FUNCTION_NOT_FOUND,
        GRPC_INVALID_FUNCTION_HANDLE,
        GRPC_INVALID_SESSION_ID,
        GRPC_RPC_REFUSED,
        GRPC_COMMUNICATION_FAILED,
        GRPC_SESSION_FAILED,
        GRPC_NOT_COMPLETED,
        GRPC_NONE_COMPLETED,
        GRPC_INVALID_OBJECT_HANDLE_NP,
        GRPC_CLASS_NOT_FOUND_NP,
        GRPC_TIMEOUT_NP,
        GRPC_CANCELED_NP,
        GRPC_OTHER_ERROR_CODE,
    };
    const int others[] = {GRPC_UNKNOWN_ERROR_CODE, GRPC_LAST_ERROR_CODE, -1, INT_MAX, INT_MIN};
    for (int i = 0; i < 19; i++) {
        CHECK(numbers[i] == i && grpc_error_string(i)[0] != 0);
        for (int j = 0; j < i; j++)
            CHECK(strcmp(grpc_error_string(i), grpc_error_string(j)) != 0);
    }
    for (int i = 0; i < 5; i++)
        CHECK(strcmp(grpc_error_string(others[i]), "GRPC_UNKNOWN_ERROR_CODE") == 0);
    CHECK(GRPC_UNKNOWN_ERROR_CODE == 19 && GRPC_LAST_ERROR_CODE == 20);
    CHECK(GRPC_SESSIONID_VOID == -1 && GRPC_SESSION_DONE == 1 && GRPC_SESSION_DOWN == 4);
}

/* Arguments may be changed as soon as the call is begun, with `wait` and with `copy`. */
static void transfers(void)
{
    grpc_argument_transfer_t_np ways[] = {
        GRPC_ARGUMENT_TRANSFER_WAIT, GRPC_ARGUMENT_TRANSFER_COPY, GRPC_ARGUMENT_TRANSFER_NOWAIT};
    grpc_function_handle_t mmul = function("cases/mmul");
    grpc_session_attr_t_np attr;
    static double a[100 * 100], b[100 * 100], c[8][100 * 100];
    for (int way = 0; way < 3; way++) {
        grpc_sessionid_t ids[8];
        OK(grpc_session_attr_initialize_np(&mmul, &attr));
        OK(grpc_session_attr_set_np(&attr, GRPC_SESSION_ATTR_WAIT_ARG_TRANSFER, &ways[way]));
        for (int i = 0; i < 100 * 100; i++)
            a[i] = 1, b[i] = 2;
        for (int i = 0; i < 8; i++) {
            OK(grpc_call_async_with_attr_np(&mmul, &ids[i], &attr, 100, a, b, c[i]));
            for (int j = 0; j < 100 * 100 && ways[way] != GRPC_ARGUMENT_TRANSFER_NOWAIT; j++)
                a[j] = i + 2;
        }
        OK(grpc_wait_and(ids, 8));
        for (int i = 0; i < 8; i++) {
            double factor = ways[way] == GRPC_ARGUMENT_TRANSFER_NOWAIT ? 1 : i + 1;
            CHECK(c[i][0] == 200 * factor && c[i][100 * 100 - 1] == 200 * factor);
        }
        OK(grpc_session_attr_destruct_np(&attr));
    }
}

/* A session that has failed has ended: probes say so, and waits say that it failed, and which. */
static void failures(void)
{
    grpc_sessionid_t ids[4], done, none;
    int sum;
    OK(grpc_call_async(&leave, &ids[0], 1));
    while (grpc_probe(ids[0]) == GRPC_NOT_COMPLETED)
        pause_for(0.001);
    OK(grpc_probe(ids[0]));
    OK(grpc_probe_or(ids, 1, &done));
    CHECK(done == ids[0]);
    OK(grpc_call_async(&nap, &ids[1], 0.5));
    IS(GRPC_SESSION_FAILED, grpc_wait_or(ids, 2, &done));
    CHECK(done == ids[0]);
    IS(GRPC_SESSION_FAILED, grpc_wait(ids[0]));

    OK(grpc_call_async(&leave, &ids[2], 2));
    OK(grpc_call_async(&add, &ids[3], 1, 2, &sum));
    IS(GRPC_SESSION_FAILED, grpc_wait_and(ids, 4));
    OK(grpc_probe(ids[1]));
    OK(grpc_get_failed_sessionid(&done));
    CHECK(done == ids[0]);
    OK(grpc_get_failed_sessionid(&done));
    CHECK(done == ids[2]);
    for (int i = 0; i < 2; i++) {
        OK(grpc_get_failed_sessionid(&none));
        CHECK(none == GRPC_SESSIONID_VOID);
    }

    /* The same session more than once in a list. */
    OK(grpc_call_async(&add, &ids[0], 3, 4, &sum));
    ids[1] = ids[2] = ids[0];
    OK(grpc_wait_or(ids, 3, &done));
    OK(grpc_wait_and(ids, 3));
    CHECK(done == ids[0] && sum == 7);
    /* Waiting for a list leaves nothing for those who wait for any. */
    OK(grpc_wait_any(&done));
    CHECK(done == GRPC_SESSIONID_VOID);
    OK(grpc_get_failed_sessionid(&none));
    CHECK(none == GRPC_SESSIONID_VOID);
}

/* Calls that wait for a worker are cancelled at once; none to cancel is no error. */
static void cancelling(void)
{
    enum { MANY = 64 };
    grpc_sessionid_t ids[MANY];
    int sum;
    double begin = now();
    OK(grpc_cancel_all());
    for (int i = 0; i < MANY; i++)
        OK(grpc_call_async(&nap, &ids[i], 60.0));
    OK(grpc_cancel(ids[MANY - 1]));
    IS(GRPC_SESSION_FAILED, grpc_wait(ids[MANY - 1]));
    IS(GRPC_CANCELED_NP, grpc_get_error(ids[MANY - 1]));
    OK(grpc_cancel_all());
    IS(GRPC_SESSION_FAILED, grpc_wait_all());
    for (int i = 0; i < MANY; i++)
        IS(GRPC_CANCELED_NP, grpc_get_error(ids[i]));
    OK(grpc_call(&add, 1, 2, &sum));
    CHECK(now() - begin < 20);
}

static void last_errors(void)
{
    grpc_function_handle_t handle;
    int sum;
    IS(GRPC_FUNCTION_NOT_FOUND, grpc_function_handle_default(&handle, "cases/none"));
    OK(grpc_call(&add, 1, 2, &sum));
    IS(GRPC_FUNCTION_NOT_FOUND, grpc_last_error_get_np());
    IS(GRPC_INVALID_SESSION_ID, grpc_wait(-5));
    IS(GRPC_INVALID_SESSION_ID, grpc_last_error_get_np());
    IS(GRPC_INVALID_SESSION_ID, grpc_get_last_error_np());
}

static void *call_for_long(void *handle)
{
    IS(GRPC_CANCELED_NP, grpc_call(handle, 60.0));
    return NULL;
}

static void *invoke_for_long(void *handle)
{
    IS(GRPC_CANCELED_NP, grpc_invoke_np(handle, "nap", 60.0));
    return NULL;
}

/* Ninf-G stopped or stood still when a handle was given up while others used it. */
static void handles_that_are_in_use(void)
{
    grpc_function_handle_t handle = function("cases/nap");
    grpc_object_handle_t_np object;
    pthread_t threads[2];
    double begin = now();
    OK(grpc_object_handle_default_np(&object, "cases/Counter"));
    CHECK(pthread_create(&threads[0], NULL, call_for_long, &handle) == 0);
    CHECK(pthread_create(&threads[1], NULL, invoke_for_long, &object) == 0);
    pause_for(0.2);
    OK(grpc_function_handle_destruct(&handle));
    OK(grpc_object_handle_destruct_np(&object));
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    handle = function("cases/nap");
    CHECK(pthread_create(&threads[0], NULL, call_for_long, &handle) == 0);
    pause_for(0.2);
    OK(grpc_cancel_all());
    pthread_join(threads[0], NULL);
    CHECK(now() - begin < 20);
}

/* Sizes beyond 2 GiB. Nothing of it is touched but the ends. */
static void large_arrays(void)
{
    grpc_function_handle_t ends = function("cases/ends");
    long n = (1L << 31) + 100;
    char *bytes = grpc_malloc_np((size_t)n);
    grpc_sessionid_t id;
    CHECK(bytes != NULL);
    bytes[0] = 3;
    bytes[n - 1] = 4;
    OK(grpc_call_async(&ends, &id, n, bytes));
    OK(grpc_wait(id));
    CHECK(bytes[0] == 4 && bytes[n - 1] == 3);
    OK(grpc_free_np(bytes));
    IS(GRPC_OTHER_ERROR_CODE, grpc_call(&scale, LONG_MAX, 1.0, &id));
    IS(GRPC_OTHER_ERROR_CODE, grpc_call(&scale, LONG_MIN, 1.0, &id));
    TELLS(GRPC_SESSIONID_VOID, "`x`");
}

int main(void)
{
    codes();
    OK(grpc_initialize(NULL));
    add = function("cases/add");
    nap = function("cases/nap");
    leave = function("cases/leave");
    scale = function("cases/scale");
    transfers();
    failures();
    cancelling();
    last_errors();
    handles_that_are_in_use();
    large_arrays();
    OK(grpc_finalize());
    return 0;
}
