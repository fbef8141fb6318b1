/* The calls of the original Ninf. */
#include "check.h"

#include <ninf.h>

int main(int argc, char **argv)
{
    int sum = 0, a = 3, b = 4, done, sums[10];
    double matrix[1] = {3}, product[1];
    void *arguments[] = {&a, &b, &sum};
    CHECK(argc == 5);
    CHECK(Ninf_parse_arg(argc, argv) == 1 && argv[1] == NULL);
    CHECK(Ninf_call("cases/add", 1, 2, &sum) == 0 && sum == 3);
    CHECK(Ninf_call("add", 2, 2, &sum) == 0 && sum == 4);
    CHECK(Ninf_call("ninf://localhost:3000/cases/mmul", 1, matrix, matrix, product) == 0);
    CHECK(product[0] == 9);
    CHECK(Ninf_call_v("cases/add", 3, arguments) == 0 && sum == 7);
    CHECK(Ninf_call_v("cases/add", 2, arguments) == -1);
    CHECK(Ninf_call("cases/none") == -1);
    Ninf_perror("as expected");
    CHECK(strstr(Ninf_perror_string(), "none") != NULL);
    CHECK(Ninf_call("ninf://no.such.host.invalid/cases/add", 1, 2, &sum) == -1);
    CHECK(Ninf_set_server("no.such.host.invalid", 3000) == 0);
    CHECK(Ninf_call("cases/add", 1, 2, &sum) == -1);
    CHECK(Ninf_set_server(NULL, 0) == 0);
    CHECK(Ninf_call("cases/add", 1, 2, &sum) == 0);
    CHECK(Ninf_call(NULL) == -1);

    int session = Ninf_call_async("cases/add", 5, 6, &sum);
    CHECK(session >= 0 && Ninf_wait(session) == 0 && sum == 11);
    const Ninf_info *info = Ninf_get_info(session);
    CHECK(info != NULL && info->session == session && info->ended && info->error == 0);
    CHECK(info->total_time > 0 && info->bytes_sent > 0 && info->host[0] != 0);
    CHECK(Ninf_get_last_info() != NULL);
    CHECK(Ninf_session_remove(session) == 0 && Ninf_get_info(session) == NULL);

    session = Ninf_call_v_async("cases/add", 3, arguments);
    CHECK(Ninf_wait_any(&done) == 0 && done == session);
    session = Ninf_call_async("cases/nap", 60.0);
    CHECK(Ninf_session_probe(session) == 0 && Ninf_session_cancel(session) == 0);
    CHECK(Ninf_wait(session) == -1 && Ninf_session_probe(session) == 1);
    int two[2] = {Ninf_call_async("add", 1, 1, &sums[0]), Ninf_call_async("add", 2, 2, &sums[1])};
    CHECK(Ninf_wait_or(two, 2, &done) == 0 && Ninf_wait_and(two, 2) == 0);
    CHECK(Ninf_call_async("add", 1, 1, &sum) >= 0 && Ninf_wait_all() == 0);

    Ninf_executable *executable = Ninf_get_executable("cases/add");
    CHECK(executable != NULL && Ninf_get_executable("cases/none") == NULL);
    CHECK(Ninf_call_executable(executable, 8, 9, &sum) == 0 && sum == 17);
    session = Ninf_call_executable_async(executable, 9, 9, &sum);
    CHECK(Ninf_wait(session) == 0 && sum == 18);
    CHECK(Ninf_executable_finalize(executable) == 0);
    CHECK(Ninf_executable_finalize(executable) == -1);
    CHECK(Ninf_call_executable(executable, 8, 9, &sum) == -1);
    CHECK(Ninf_call_executable(NULL, 8, 9, &sum) == -1);

    int group = Ninf_group_init("cases/add");
    CHECK(group >= 0);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 10; i++)
            CHECK(Ninf_group_call_async(group, i, round, &sums[i]) >= 0);
        CHECK(Ninf_group_wait_all(group) == 0);
        for (int i = 0; i < 10; i++)
            CHECK(sums[i] == i + round);
    }
    CHECK(Ninf_group_finalize(group) == 0 && Ninf_group_call_async(group, 1, 2, &sum) == -1);
    OK(grpc_finalize());
    /* Again, by itself. */
    CHECK(Ninf_call("cases/add", 1, 2, &sum) == 0);
    OK(grpc_finalize());
    return 0;
}
