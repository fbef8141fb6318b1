/* Functions that break their workers: the call fails and tells why, and everything else continues. */
#include "check.h"

static grpc_function_handle_t add;

static void still_works(void)
{
    int sum = 0;
    OK(grpc_call(&add, 20, 22, &sum));
    CHECK(sum == 42);
}

int main(void)
{
    int result = 0, one = 1;
    OK(grpc_initialize(NULL));
    add = function("cases/add");
    grpc_function_handle_t segfault = function("cases/segfault"), leave = function("cases/leave"),
                           divide = function("cases/divide"), hoard = function("cases/hoard"),
                           spin = function("cases/spin"), split = function("cases/split_off"),
                           forked = function("cases/fork_and_return"),
                           again = function("cases/again"), shout = function("cases/shout");
    IS(GRPC_COMMUNICATION_FAILED, grpc_call(&segfault));
    TELLS(GRPC_SESSIONID_VOID, "SIGSEGV");
    TELLS(GRPC_SESSIONID_VOID, "hint");
    still_works();
    IS(GRPC_COMMUNICATION_FAILED, grpc_call(&leave, 9));
    TELLS(GRPC_SESSIONID_VOID, "ended its process with status 9");
    TELLS(GRPC_SESSIONID_VOID, "leaving now");
    still_works();
    IS(GRPC_COMMUNICATION_FAILED, grpc_call(&leave, 0));
    TELLS(GRPC_SESSIONID_VOID, "status 0");
    IS(GRPC_COMMUNICATION_FAILED, grpc_call(&divide, 0, &result));
    TELLS(GRPC_SESSIONID_VOID, "SIGFPE");
    still_works();
    OK(grpc_call(&divide, 1, &result));
    IS(GRPC_COMMUNICATION_FAILED, grpc_call(&hoard));
    TELLS(GRPC_SESSIONID_VOID, "out of memory");
    still_works();
    grpc_session_attr_t_np attr;
    OK(grpc_session_attr_initialize_np(&spin, &attr));
    OK(grpc_session_attr_set_np(&attr, GRPC_SESSION_ATTR_SESSION_TIMEOUT, &one));
    IS(GRPC_TIMEOUT_NP, grpc_call_with_attr_np(&spin, &attr));
    still_works();
    OK(grpc_call(&split, &result));
    CHECK(result == 7);
    still_works();
    /* The child of the function returns as well: one answer counts, and nothing hangs. */
    int code = grpc_call(&forked, &result);
    CHECK(code == GRPC_NO_ERROR || code == GRPC_COMMUNICATION_FAILED);
    still_works();
    OK(grpc_call(&again, &result));
    OK(grpc_call(&shout, "no newline"));
    OK(grpc_call(&shout, "a line\n"));
    pause_for(0.2);
    OK(grpc_finalize());
    return 0;
}
