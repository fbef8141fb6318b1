/* Many threads at once, and handles that are destructed while others wait. */
#include "check.h"

#include <pthread.h>

#define THREADS 8
#define ROUNDS 300

static grpc_function_handle_t add, nap;

static void *call_and_wait(void *argument)
{
    int number = *(int *)argument, sum;
    for (int i = 0; i < ROUNDS; i++) {
        OK(grpc_call(&add, number, i, &sum));
        CHECK(sum == number + i);
        grpc_sessionid_t ids[4], done;
        int sums[4];
        for (int j = 0; j < 4; j++)
            OK(grpc_call_async(&add, &ids[j], number, j, &sums[j]));
        switch (i % 3) {
        case 0:
            OK(grpc_wait_and(ids, 4));
            break;
        case 1:
            for (int left = 4; left > 0; left--) {
                OK(grpc_wait_or(ids, (size_t)left, &done));
                for (int j = 0; j < left; j++)
                    if (ids[j] == done)
                        ids[j] = ids[left - 1];
            }
            break;
        default:
            for (int j = 0; j < 4; j++)
                OK(grpc_wait(ids[j]));
        }
        for (int j = 0; j < 4; j++)
            CHECK(sums[j] == number + j);
        grpc_function_handle_t own = function("cases/add");
        OK(grpc_call(&own, 1, 1, &sum));
        OK(grpc_function_handle_destruct(&own));
    }
    return NULL;
}

static int collected[2], results[1000];

static void *collect(void *argument)
{
    grpc_sessionid_t id;
    for (;;) {
        OK(grpc_wait_any(&id));
        if (id == GRPC_SESSIONID_VOID)
            return NULL;
        ++*(int *)argument;
    }
}

static void *wait_for_any(void *argument)
{
    grpc_sessionid_t id;
    (void)argument;
    IS(GRPC_SESSION_FAILED, grpc_wait_any(&id));
    IS(GRPC_CANCELED_NP, grpc_get_error(id));
    return NULL;
}

static void *wait_for_one(void *argument)
{
    IS(GRPC_SESSION_FAILED, grpc_wait(*(grpc_sessionid_t *)argument));
    return NULL;
}

static void *call_for_long(void *argument)
{
    grpc_error_t *error = argument;
    *error = grpc_call(&nap, 60.0);
    return NULL;
}

static void *wait_all(void *argument)
{
    grpc_error_t *error = argument;
    *error = grpc_wait_all();
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    int numbers[THREADS];
    OK(grpc_initialize(NULL));
    add = function("cases/add");
    nap = function("cases/nap");
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i * 1000;
        CHECK(pthread_create(&threads[i], NULL, call_and_wait, &numbers[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);

    /* Two threads share what there is to wait for: each session is given once. */
    grpc_sessionid_t id;
    for (int i = 0; i < 1000; i++)
        OK(grpc_call_async(&add, &id, i, i, &results[i]));
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, collect, &collected[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    CHECK(collected[0] + collected[1] == 1000);
    for (int i = 0; i < 1000; i++)
        CHECK(results[i] == 2 * i);

    grpc_function_handle_t handle = function("cases/nap");
    OK(grpc_call_async(&handle, &id, 60.0));
    pthread_create(&threads[0], NULL, wait_for_any, NULL);
    pause_for(0.1);
    OK(grpc_function_handle_destruct(&handle));
    pthread_join(threads[0], NULL);
    handle = function("cases/nap");
    OK(grpc_call_async(&handle, &id, 60.0));
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, wait_for_one, &id);
    pause_for(0.1);
    OK(grpc_function_handle_destruct(&handle));
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);

    /* The end, while others are still at it. */
    grpc_error_t errors[2] = {GRPC_NO_ERROR, GRPC_NO_ERROR};
    OK(grpc_call_async(&nap, &id, 60.0));
    pthread_create(&threads[0], NULL, call_for_long, &errors[0]);
    pthread_create(&threads[1], NULL, wait_all, &errors[1]);
    pause_for(0.2);
    double begin = now();
    OK(grpc_finalize());
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    CHECK(errors[0] == GRPC_NOT_INITIALIZED && errors[1] == GRPC_NOT_INITIALIZED);
    CHECK(now() - begin < 5);
    return 0;
}
