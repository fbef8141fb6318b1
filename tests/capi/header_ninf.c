/* Does ninf.h stand alone, and do programs compile that were written for Ninf? */
#include <ninf.h>

#include <stdio.h>

int main(int argc, char **argv)
{
    double a[4] = {0}, b[4] = {0};
    int n = 2, id, ids[2];
    void *addresses[3];
    Ninf_executable_t *executable;
    const Ninf_info *info;
    Ninf_group_t *group;

    argc = Ninf_parse_arg(argc, argv);
    Ninf_set_server("localhost", "3000");
    if (Ninf_call("ninf://localhost:3000/sample/mmul", n, a, b) == NINF_ERROR)
        Ninf_perror("mmul");
    addresses[0] = &n;
    addresses[1] = a;
    addresses[2] = b;
    Ninf_call_v("sample/mmul", 3, addresses);
    ids[0] = Ninf_call_async("sample/mmul", n, a, b);
    ids[1] = Ninf_call_v_async("sample/mmul", 3, addresses);
    Ninf_wait_and(ids, 2);
    id = Ninf_wait_or(ids, 2);
    Ninf_wait_any(&id);
    if (Ninf_session_probe(id) == TRUE)
        Ninf_session_cancel(id);
    Ninf_wait(id);
    info = Ninf_get_last_info();
    if (info != NULL)
        printf("%d %g\n", info->session, info->run_time);

    executable = Ninf_get_executable("sample/mmul");
    Ninf_call_executable(executable, n, a, b);
    id = Ninf_call_executable_async(executable, n, a, b);
    Ninf_wait_all();
    Ninf_executable_finalize(executable);

    group = Ninf_group_init("sample/mmul");
    Ninf_group_call_async(group, n, a, b);
    Ninf_group_wait_all(group);
    Ninf_group_finalize(group);
    Ninf_transaction_begin();
    Ninf_transaction_end();
    Ninf_session_remove(id);
    puts(Ninf_perror_string());
    return argc > 1;
}
