/* Sessions: waiting in all ways, cancelling, time limits, information. */
#include "check.h"

static grpc_function_handle_t add, nap, obey, leave, spin;

static void waiting(void)
{
    grpc_sessionid_t a, b, c, done, ids[3];
    int sum;
    OK(grpc_wait_all());
    OK(grpc_wait_any(&done));
    CHECK(done == GRPC_SESSIONID_VOID);
    OK(grpc_wait_and(NULL, 0));
    IS(GRPC_INVALID_SESSION_ID, grpc_wait_or(NULL, 0, &done));
    IS(GRPC_NONE_COMPLETED, grpc_probe_or(NULL, 0, &done));

    OK(grpc_call_async(&nap, &a, 0.3));
    OK(grpc_call_async(&add, &b, 1, 2, &sum));
    CHECK(a >= 0 && b > a);
    IS(GRPC_NOT_COMPLETED, grpc_probe(a));
    IS(GRPC_NO_ERROR, grpc_get_error(a));
    IS(GRPC_NONE_COMPLETED, grpc_probe_or(&a, 1, &done));
    ids[0] = a, ids[1] = b;
    OK(grpc_wait_or(ids, 2, &done));
    CHECK(done == b && sum == 3);
    OK(grpc_wait_any(&done));
    CHECK(done == a);
    OK(grpc_probe(a));
    OK(grpc_get_error(a));
    TELLS(a, "no error");
    OK(grpc_wait(a));

    OK(grpc_call_async(&add, &a, 1, 2, &sum));
    while (grpc_probe(a) == GRPC_NOT_COMPLETED)
        pause_for(0.001);
    CHECK(sum == 3);
    OK(grpc_probe_or(&a, 1, &done));
    CHECK(done == a);
    OK(grpc_wait(a));

    for (int i = 0; i < 3; i++)
        OK(grpc_call_async(&add, &ids[i], i, i, &sum));
    OK(grpc_wait_and(ids, 3));
    OK(grpc_call_async(&leave, &a, 3));
    OK(grpc_call_async(&add, &b, 1, 2, &sum));
    OK(grpc_call_async(&leave, &c, 4));
    IS(GRPC_SESSION_FAILED, grpc_wait_all());
    OK(grpc_get_failed_sessionid(&done));
    CHECK(done == a);
    IS(GRPC_COMMUNICATION_FAILED, grpc_get_error(a));
    TELLS(a, "status 3");
    OK(grpc_get_failed_sessionid(&done));
    CHECK(done == c);
    OK(grpc_get_failed_sessionid(&done));
    CHECK(done == GRPC_SESSIONID_VOID);
    OK(grpc_call_async(&leave, &a, 3));
    IS(GRPC_SESSION_FAILED, grpc_wait_any(&done));
    CHECK(done == a);
    IS(GRPC_COMMUNICATION_FAILED, grpc_function_handle_get_error_np(&leave));
}

static void unknown(void)
{
    grpc_sessionid_t done, ids[] = {123456789, -7, GRPC_SESSIONID_VOID, 2147483647};
    grpc_session_info_t_np *info;
    grpc_function_handle_t *handle;
    int status;
    for (int i = 0; i < 4; i++) {
        IS(GRPC_INVALID_SESSION_ID, grpc_wait(ids[i]));
        IS(GRPC_INVALID_SESSION_ID, grpc_probe(ids[i]));
        IS(GRPC_INVALID_SESSION_ID, grpc_cancel(ids[i]));
        IS(GRPC_INVALID_SESSION_ID, grpc_get_error(ids[i]));
        IS(GRPC_INVALID_SESSION_ID, grpc_get_handle(&handle, ids[i]));
        IS(GRPC_INVALID_SESSION_ID, grpc_session_info_get_np(ids[i], &info, &status));
        CHECK(status == GRPC_SESSION_UNKNOWN_STATUS);
        IS(GRPC_INVALID_SESSION_ID, grpc_session_info_remove_np(ids[i]));
    }
    IS(GRPC_INVALID_SESSION_ID, grpc_wait_and(ids, 4));
    IS(GRPC_INVALID_SESSION_ID, grpc_wait_or(ids, 4, &done));
    IS(GRPC_INVALID_SESSION_ID, grpc_probe_or(ids, 4, &done));
    IS(GRPC_OTHER_ERROR_CODE, grpc_wait_and(NULL, 4));
    IS(GRPC_OTHER_ERROR_CODE, grpc_wait_or(NULL, 4, &done));
    IS(GRPC_OTHER_ERROR_CODE, grpc_wait_or(ids, 4, NULL));
    IS(GRPC_OTHER_ERROR_CODE, grpc_probe_or(ids, 4, NULL));
    IS(GRPC_OTHER_ERROR_CODE, grpc_wait_any(NULL));
    IS(GRPC_OTHER_ERROR_CODE, grpc_get_failed_sessionid(NULL));
    TELLS(ids[0], "never existed");
}

static void cancelling(void)
{
    grpc_sessionid_t a, b;
    int cancelled = 0, sum = 0;
    double begin = now();
    OK(grpc_call_async(&obey, &a, 30.0, &cancelled));
    OK(grpc_call_async(&spin, &b));
    pause_for(0.1);
    OK(grpc_cancel(a));
    OK(grpc_cancel(a));
    IS(GRPC_SESSION_FAILED, grpc_wait(a));
    IS(GRPC_CANCELED_NP, grpc_get_error(a));
    OK(grpc_cancel_all());
    IS(GRPC_SESSION_FAILED, grpc_wait(b));
    IS(GRPC_CANCELED_NP, grpc_get_error(b));
    OK(grpc_call_async(&add, &a, 1, 2, &sum));
    OK(grpc_wait(a));
    OK(grpc_cancel(a));
    OK(grpc_get_error(a));
    CHECK(now() - begin < 10);
}

static void limits(void)
{
    grpc_session_attr_t_np attr;
    grpc_argument_transfer_t_np nowait = GRPC_ARGUMENT_TRANSFER_NOWAIT;
    grpc_sessionid_t id;
    int one = 1;
    double begin = now();
    OK(grpc_session_attr_initialize_np(&spin, &attr));
    OK(grpc_session_attr_set_np(&attr, GRPC_SESSION_ATTR_SESSION_TIMEOUT, &one));
    IS(GRPC_TIMEOUT_NP, grpc_call_with_attr_np(&spin, &attr));
    TELLS(GRPC_SESSIONID_VOID, "time limit");
    OK(grpc_session_attr_set_np(&attr, GRPC_SESSION_ATTR_WAIT_ARG_TRANSFER, &nowait));
    OK(grpc_call_async_with_attr_np(&spin, &id, &attr));
    IS(GRPC_SESSION_FAILED, grpc_wait(id));
    IS(GRPC_TIMEOUT_NP, grpc_get_error(id));
    CHECK(now() - begin < 10);
    OK(grpc_session_attr_destruct_np(&attr));
}

static void information(void)
{
    grpc_session_info_t_np *info, direct;
    grpc_sessionid_t id, ids[20];
    int status, sum;
    OK(grpc_call_async(&nap, &id, 0.05));
    OK(grpc_session_info_get_np(id, NULL, &status));
    CHECK(status == GRPC_SESSION_EXECUTING || status == GRPC_SESSION_ARG_IS_NOT_TRANSMITTED);
    IS(GRPC_NOT_COMPLETED, grpc_session_info_remove_np(id));
    OK(grpc_wait(id));
    OK(grpc_session_info_get_np(id, &info, &status));
    struct timeval run = info->gei_measureExecutable.calculationRealTime;
    CHECK(status == GRPC_SESSION_DONE && run.tv_sec == 0);
    CHECK(run.tv_usec >= 50000 && run.tv_usec < 1000000);
    CHECK(info->gei_place.processId > 0 && info->gei_place.workerNumber >= 0);
    CHECK(info->gei_place.hostname[0] != 0 && info->gei_place.attempts == 1);
    CHECK(info->gei_place.argumentNbytes > 0);
    CHECK(info->gei_compressionInformation.nElements == 0);
    OK(grpc_session_info_release_np(info));
    IS(GRPC_OTHER_ERROR_CODE, grpc_session_info_release_np(&direct));
    OK(grpc_session_info_release_np(NULL));
    OK(grpc_get_info_np(id, &direct, &status));
    OK(grpc_call(&add, 1, 2, &sum));
    OK(grpc_get_last_info_np(&direct, &status));
    CHECK(status == GRPC_SESSION_DONE && direct.gei_place.resultNbytes > 0);
    OK(grpc_session_info_remove_np(id));
    IS(GRPC_INVALID_SESSION_ID, grpc_get_error(id));

    OK(grpc_session_info_set_threshold_np(5));
    for (int i = 0; i < 20; i++)
        OK(grpc_call_async(&add, &ids[i], i, i, &sum));
    OK(grpc_wait_and(ids, 20));
    IS(GRPC_INVALID_SESSION_ID, grpc_get_error(ids[14]));
    for (int i = 15; i < 20; i++)
        OK(grpc_get_error(ids[i]));
    OK(grpc_session_info_set_threshold_np(0));
    IS(GRPC_INVALID_SESSION_ID, grpc_get_error(ids[19]));
    OK(grpc_session_info_set_threshold_np(-1));
    OK(grpc_call_async(&leave, &id, 1));
    IS(GRPC_SESSION_FAILED, grpc_wait(id));
    OK(grpc_session_info_get_np(id, NULL, &status));
    CHECK(status == GRPC_SESSION_DOWN);
}

static void destructing(void)
{
    grpc_function_handle_t handle = function("cases/nap"), quick = function("cases/add");
    grpc_sessionid_t id, done;
    int sum = 0;
    double begin = now();
    OK(grpc_call_async(&handle, &id, 60.0));
    OK(grpc_function_handle_destruct(&handle));
    IS(GRPC_SESSION_FAILED, grpc_wait(id));
    IS(GRPC_CANCELED_NP, grpc_get_error(id));
    OK(grpc_call_async(&quick, &id, 1, 2, &sum));
    while (grpc_probe_or(&id, 1, &done) != GRPC_NO_ERROR)
        pause_for(0.001);
    OK(grpc_function_handle_destruct(&quick));
    OK(grpc_wait(id));
    CHECK(now() - begin < 10 && sum == 3);
}

int main(void)
{
    OK(grpc_initialize(NULL));
    grpc_session_info_t_np info;
    IS(GRPC_INVALID_SESSION_ID, grpc_get_last_info_np(&info, NULL));
    add = function("cases/add");
    nap = function("cases/nap");
    obey = function("cases/obey");
    leave = function("cases/leave");
    spin = function("cases/spin");
    waiting();
    unknown();
    cancelling();
    limits();
    information();
    destructing();
    OK(grpc_finalize());
    return 0;
}
