/* Where files may not be long, shared memory may not be either: that is reported, and ends nothing. */
#include "check.h"

#include <sys/resource.h>

static void limit_to(rlim_t bytes)
{
    struct rlimit limit;
    CHECK(getrlimit(RLIMIT_FSIZE, &limit) == 0);
    limit.rlim_cur = bytes;
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
}

int main(void)
{
    int sum = 0;
    static double x[1000 * 1000], y[1000 * 1000], z[1000 * 1000];
    limit_to(16);
    IS(GRPC_OTHER_ERROR_CODE, grpc_initialize(NULL));
    TELLS(GRPC_SESSIONID_VOID, "ulimit -f");

    /* Enough for the client alone. */
    limit_to(64 << 10);
    OK(grpc_initialize(NULL));
    grpc_function_handle_t none;
    IS(GRPC_SERVER_NOT_FOUND, grpc_function_handle_default(&none, "cases/add"));
    TELLS(GRPC_SESSIONID_VOID, "ulimit -f");
    OK(grpc_finalize());

    /* Enough for all but large arguments. */
    limit_to(2 << 20);
    OK(grpc_initialize(NULL));
    grpc_function_handle_t add = function("cases/add"), mmul = function("cases/mmul"),
                           leave = function("cases/leave");
    OK(grpc_call(&add, 3, 4, &sum));
    CHECK(sum == 7);
    IS(GRPC_OTHER_ERROR_CODE, grpc_call(&mmul, 1000, x, y, z));
    TELLS(GRPC_SESSIONID_VOID, "ulimit -f");
    IS(GRPC_COMMUNICATION_FAILED, grpc_call(&leave, 3));
    OK(grpc_call(&add, 3, 5, &sum));
    CHECK(sum == 8);
    OK(grpc_finalize());
    return 0;
}
