/* A program with habits: timers that interrupt everything, and no interest in its children. */
#include "check.h"

#include <signal.h>
#include <sys/time.h>

static volatile int ticks;

static void tick(int number)
{
    (void)number;
    ticks++;
}

int main(void)
{
    struct sigaction action = {.sa_handler = tick};
    struct itimerval every_ms = {{0, 1000}, {0, 1000}};
    grpc_sessionid_t id;
    int sum;
    signal(SIGCHLD, SIG_IGN);
    sigaction(SIGALRM, &action, NULL);
    OK(grpc_initialize(NULL));
    setitimer(ITIMER_REAL, &every_ms, NULL);
    grpc_function_handle_t add = function("cases/add"), leave = function("cases/leave"),
                           nap = function("cases/nap");
    for (int i = 0; i < 2000; i++) {
        OK(grpc_call(&add, i, 1, &sum));
        CHECK(sum == i + 1);
        OK(grpc_call_async(&add, &id, i, 2, &sum));
        OK(grpc_wait_any(&id));
        CHECK(sum == i + 2);
    }
    IS(GRPC_COMMUNICATION_FAILED, grpc_call(&leave, 3));
    TELLS(GRPC_SESSIONID_VOID, "status 3");
    OK(grpc_call(&nap, 0.2));
    double begin = now();
    OK(grpc_finalize());
    CHECK(now() - begin < 5 && ticks > 10);
    return 0;
}
