/* The calls of the original Ninf. */
#include "check.h"

#include <ninf.h>
#include <ninf_error.h>
#include <ninf_stub.h>

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
    CHECK(Ninf_set_server("no.such.host.invalid", "3000") == 0);
    CHECK(Ninf_call("cases/add", 1, 2, &sum) == -1);
    CHECK(Ninf_set_server(NULL, NULL) == 0);
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
    CHECK(Ninf_session_probe(session) == TRUE && Ninf_session_cancel(session) == 0);
    CHECK(Ninf_wait(session) == -1 && Ninf_session_probe(session) == FALSE);
    int two[2] = {Ninf_call_async("add", 1, 1, &sums[0]), Ninf_call_async("add", 2, 2, &sums[1])};
    done = Ninf_wait_or(two, 2);
    CHECK((done == two[0] || done == two[1]) && Ninf_wait_and(two, 2) == 0);
    /* Numbers that are no session are passed over. */
    int mixed[4] = {-1, two[1], 999999, two[0]}, none[2] = {-1, 999999};
    CHECK(Ninf_wait_and(mixed, 4) == 0 && Ninf_wait_and(none, 2) == 0);
    done = Ninf_wait_or(mixed, 4);
    CHECK((done == two[0] || done == two[1]) && Ninf_wait_or(none, 2) == -1);
    CHECK(Ninf_wait_or(NULL, 2) == -1 && Ninf_wait_or(NULL, 0) == -1);
    CHECK(Ninf_call_async("add", 1, 1, &sum) >= 0 && Ninf_wait_all() == 0);

    Ninf_executable_t *executable = Ninf_get_executable("cases/add");
    CHECK(executable != NULL && Ninf_get_executable("cases/none") == NULL);
    CHECK(Ninf_call_executable(executable, 8, 9, &sum) == 0 && sum == 17);
    session = Ninf_call_executable_async(executable, 9, 9, &sum);
    CHECK(Ninf_wait(session) == 0 && sum == 18);
    CHECK(Ninf_executable_finalize(executable) == 0);
    CHECK(Ninf_executable_finalize(executable) == -1);
    CHECK(Ninf_call_executable(executable, 8, 9, &sum) == -1);
    CHECK(Ninf_call_executable(NULL, 8, 9, &sum) == -1);

    Ninf_group_t *group = Ninf_group_init("cases/add");
    CHECK(group != NULL && Ninf_group_init("cases/none") == NULL);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 10; i++)
            CHECK(Ninf_group_call_async(group, i, round, &sums[i]) >= 0);
        CHECK(Ninf_group_wait_all(group) == 0);
        for (int i = 0; i < 10; i++)
            CHECK(sums[i] == i + round);
    }
    /* A group calls again what a worker has died of, unless arguments may have changed. */
    Ninf_group_t *stubborn = Ninf_group_init("cases/try_again");
    for (int i = 0; i < 3; i++) {
        char name[] = {'t', 'r', 'i', 'e', 'd', '0' + i, 0};
        CHECK(Ninf_group_call_async(stubborn, name, i + 5, &sums[i]) >= 0);
    }
    CHECK(Ninf_group_wait_all(stubborn) == 0);
    CHECK(sums[0] == 5 && sums[1] == 6 && sums[2] == 7 && Ninf_group_finalize(stubborn) == 0);
    CHECK(Ninf_call("cases/try_again", "tried.alone", 1, &sum) == -1);
    stubborn = Ninf_group_init("cases/change");
    CHECK(Ninf_group_call_async(stubborn, "tried.change", &sum) >= 0);
    CHECK(Ninf_group_wait_all(stubborn) == -1 && Ninf_group_finalize(stubborn) == 0);
    CHECK(STUB_ERROR_SIGSEGV != NINF_OK && STUB_ERROR_SIGFPE != STUB_ERROR_SIGSEGV);
    CHECK(Ninf_group_finalize(group) == 0 && Ninf_group_call_async(group, 1, 2, &sum) == -1);
    CHECK(Ninf_group_wait_all(NULL) == -1 && Ninf_group_finalize(group) == -1);

    /* What one call of a transaction leaves, the next one finds. */
    CHECK(Ninf_transaction_begin() == 0 && Ninf_transaction_begin() == -1);
    CHECK(Ninf_call("cases/add", 1, 2, &a) == 0 && Ninf_call("cases/add", a, a, &sum) == 0);
    CHECK(Ninf_call_async("cases/add", 20, 1, &b) >= 0);
    CHECK(Ninf_transaction_end() == 0 && sum == 6 && b == 21 && Ninf_transaction_end() == -1);
    CHECK(Ninf_check_in() == 0 && Ninf_call("cases/leave", 6) == -1 && Ninf_check_out() == -1);
    CHECK(Ninf_check_in() == 0 && Ninf_call_async("cases/leave", 6) >= 0 && Ninf_check_out() == -1);
    OK(grpc_finalize());
    /* Again, by itself. */
    CHECK(Ninf_call("cases/add", 1, 2, &sum) == 0);
    OK(grpc_finalize());
    return 0;
}
