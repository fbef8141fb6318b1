/* Waits for a signal, with a worker that is busy. */
#include "check.h"

#include <signal.h>

static volatile int seen;

static void handler(int number)
{
    printf("signal %d\n", number);
    fflush(stdout);
    OK(grpc_cancel_all());
    seen = number;
}

int main(int argc, char **argv)
{
    grpc_sessionid_t id;
    grpc_session_info_t_np info;
    (void)argv;
    OK(grpc_initialize(NULL));
    if (argc > 1)
        OK(grpc_signal_handler_set_np(SIGTERM, handler));
    IS(GRPC_OTHER_ERROR_CODE, grpc_signal_handler_set_np(SIGKILL, handler));
    IS(GRPC_OTHER_ERROR_CODE, grpc_signal_handler_set_np(12345, handler));
    OK(grpc_signal_handler_set_np(SIGUSR1, SIG_IGN));
    raise(SIGUSR1);
    OK(grpc_signal_handler_set_np(SIGUSR1, SIG_DFL));
    grpc_function_handle_t nap = function("cases/nap");
    OK(grpc_call_async(&nap, &id, 60.0));
    do {
        pause_for(0.01);
        OK(grpc_get_info_np(id, &info, NULL));
    } while (info.gei_place.processId == 0);
    printf("%ld\n", info.gei_place.processId);
    fflush(stdout);
    IS(GRPC_SESSION_FAILED, grpc_wait(id));
    IS(GRPC_CANCELED_NP, grpc_get_error(id));
    OK(grpc_finalize());
    CHECK(seen == SIGTERM);
    return 0;
}
