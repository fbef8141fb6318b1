/* Calls with arguments that the server may hold, and with more, which are not sent. */
#include "check.h"

#define MANY (1000 * 1000)

int main(void)
{
    static double x[MANY], y[MANY];
    grpc_sessionid_t session;
    OK(grpc_initialize(NULL));
    grpc_function_handle_t scale = function("stored/scale");
    x[9] = 4;
    OK(grpc_call(&scale, 10LL, 0.5, x, y));
    CHECK(y[9] == 2);
    IS(GRPC_RPC_REFUSED, grpc_call(&scale, (long long)MANY, 0.5, x, y));
    IS(GRPC_RPC_REFUSED, grpc_call_async(&scale, &session, (long long)MANY, 0.5, x, y));
    printf("%s\n%s\n", grpc_error_string(grpc_last_error_get_np()),
           grpc_error_detail_np(GRPC_SESSIONID_VOID));
    OK(grpc_call(&scale, 10LL, 2.0, x, y));
    CHECK(y[9] == 8);
    OK(grpc_finalize());
    return 0;
}
