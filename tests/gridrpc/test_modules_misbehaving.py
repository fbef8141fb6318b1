"""Functions of compiled modules that end, break or litter their worker."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import gridrpc
from gridrpc import Grid
from grids import CompileIdl, opened
from processes import LONG, descendants, run_script, until

IDL = r"""
Module bad;
Globals {
    #define _GNU_SOURCE
    #include <fenv.h>
    #include <pthread.h>
    #include <signal.h>
    #include <stdio.h>
    #include <stdlib.h>
    #include <string.h>
    #include <sys/resource.h>
    #include <sys/wait.h>
    #include <unistd.h>

    /* Steps of less than a page meet the page below the stack, wherever the stack begins. */
    static __attribute__((noinline, noclone)) int deeper(volatile char *above)
    {
        volatile char here[256];
        here[0] = *above;
        return deeper(here) + here[0];
    }

    static void *exit_with_nine(void *nothing)
    {
        exit(9);
        return nothing;
    }

    static void *for_ever(void *nothing)
    {
        for (;;)
            pause();
        return nothing;
    }
}
Define add(IN int a, IN int b, OUT int r[1]) { *r = a + b; }
Define segfault() { fputs("about to read address 8\n", stderr); *(volatile int *)8; }
Define endless_recursion() { char c = 0; deeper(&c); }
Define exits(IN int status) { fprintf(stderr, "no input %d\n", status); exit(status); }
Define child_exits(OUT int status[1])
    { int pid = fork(); if (pid == 0) exit(7); waitpid(pid, status, 0); *status >>= 8; }
Define thread_exits() { pthread_t t; pthread_create(&t, 0, exit_with_nine, 0); for (;;) pause(); }
Define exits_at_once(IN int status) { _exit(status); }
Define aborts() { abort(); }
Define divides(IN double by, OUT double r[1]) { feenableexcept(FE_DIVBYZERO); *r = 1 / by; }
Define divides_integers(IN int by, OUT int r[1]) { *r = 1000 / by; }
Define overruns(IN int n, OUT double r[n]) { memset(r - 100000, 1, 900000); abort(); }
Define takes_all_memory(OUT long taken[1])
    {
        struct rlimit limit = {400 << 20, 400 << 20};
        setrlimit(RLIMIT_AS, &limit);
        for (*taken = 0;; *taken += 1 << 20)
            memset(malloc(1 << 20), 1, 1 << 20);
    }
Define has_little_memory(IN long n, OUT double r[n])
    { struct rlimit limit = {900 << 20, 900 << 20}; setrlimit(RLIMIT_AS, &limit); (void)r; }
Define forks(OUT long pid[1]) { fork(); *pid = getpid(); }
Define forks_and_waits(OUT int status[1])
    { int pid = fork(); if (pid == 0) _exit(7); waitpid(pid, status, 0); *status >>= 8; }
Define runs(IN string command, OUT int status[1]) { *status = system(command); }
Define leaves_a_thread() { pthread_t t; pthread_create(&t, 0, for_ever, 0); pthread_detach(t); }
Define closes_everything() { for (int fd = 3; fd < 1000; fd++) close(fd); }
Define ignores_signals() { for (int s = 1; s < 32; s++) signal(s, SIG_IGN); for (;;) pause(); }
Define prints(IN string text) { printf("%s", text); }
"""


def goes_on(grid: Grid) -> bool:
    return all(grid.function("bad/add")(n, 1, deadline=LONG)[0] == n + 1 for n in range(10))


@pytest.mark.parametrize(
    ("name", "arguments", "signal"),
    [
        ("segfault", (), 11),
        ("endless_recursion", (), 11),
        ("aborts", (), 6),
        ("divides", (0.0,), 8),
        ("divides_integers", (0,), 8),
    ],
)
def test_a_signal_is_reported_and_the_grid_continues(
    each_module_grid: Grid, name: str, arguments: tuple[float, ...], signal: int
) -> None:
    with pytest.raises(gridrpc.WorkerLost, match=f"a worker was lost that ran bad/{name}") as lost:
        each_module_grid.function(f"bad/{name}")(*arguments, deadline=LONG)
    assert lost.value.signal == signal
    assert lost.value.status is None
    assert lost.value.pid > 0
    hint = {
        6: "called abort",
        8: "divided by zero",
        11: "used memory that it does not have",
    }[signal]
    assert hint in str(lost.value).splitlines()[-1]
    assert "Idempotent" not in str(lost.value)  # it would crash again
    if name == "segfault":
        assert "about to read address 8" in lost.value.stderr
        assert "about to read address 8" in str(lost.value)
    assert goes_on(each_module_grid)


@pytest.mark.parametrize("status", [0, 3])
def test_an_exit_is_an_error_of_the_call(each_module_grid: Grid, status: int) -> None:
    with pytest.raises(gridrpc.RemoteError) as raised:
        each_module_grid.function("bad/exits")(status, deadline=LONG)
    assert raised.value.type_name == "gridrpc.FunctionExited"
    assert f"ended its process with status {status} instead of returning" in str(raised.value)
    assert raised.value.stderr.splitlines()[-1] == f"no input {status}"
    assert str(raised.value).endswith(f"\n  no input {status}")
    assert goes_on(each_module_grid)


def test_an_exit_on_a_host_comes_with_the_standard_error_there(compile_idl: CompileIdl) -> None:
    servers = "local:?workers=1&output=kept"
    with (
        opened(servers=servers, modules=[compile_idl(IDL)]) as grid,
        pytest.raises(gridrpc.RemoteError, match="status 4 instead of returning") as raised,
    ):
        grid.function("bad/exits")(4, deadline=LONG)
    assert raised.value.stderr == "no input 4"


@pytest.mark.parametrize("status", [0, 3])
def test_an_exit_without_exit_handlers_is_reported(each_module_grid: Grid, status: int) -> None:
    with pytest.raises(gridrpc.WorkerLost) as lost:
        each_module_grid.function("bad/exits_at_once")(status, deadline=LONG)
    assert (lost.value.status, lost.value.signal) == (status, None)
    assert goes_on(each_module_grid)


@pytest.mark.parametrize("name", ["child_exits", "thread_exits"])
def test_exits_that_are_not_the_functions(each_module_grid: Grid, name: str) -> None:
    function = each_module_grid.function(f"bad/{name}")
    if name == "child_exits":
        assert function(deadline=LONG)[0] == 7
    else:
        with pytest.raises(gridrpc.WorkerLost) as lost:
            function(deadline=LONG)
        assert lost.value.status == 9
    assert goes_on(each_module_grid)


@pytest.mark.parametrize("size", [10, 100_000])
def test_writing_beyond_a_result_harms_the_worker_only(module_grid: Grid, size: int) -> None:
    mine = np.zeros(size)
    with pytest.raises(gridrpc.WorkerLost):
        module_grid.function("bad/overruns")(size, out=mine, deadline=LONG)
    np.testing.assert_array_equal(mine, 0)
    assert goes_on(module_grid)


def test_a_function_that_takes_all_memory(each_module_grid: Grid) -> None:
    with pytest.raises(gridrpc.WorkerLost) as lost:
        each_module_grid.function("bad/takes_all_memory")(deadline=LONG)
    assert lost.value.signal == 11
    assert goes_on(each_module_grid)


@pytest.mark.parametrize("transport", ["unix", "tcp"])
def test_a_worker_short_of_memory(compile_idl: CompileIdl, transport: str) -> None:
    with opened(
        workers=1, worker="native", transport=transport, modules=[compile_idl(IDL)]
    ) as grid:
        little = grid.function("bad/has_little_memory")
        little(1)
        with pytest.raises(MemoryError, match="no memory for argument `r`"):
            little(300_000_000)
        assert goes_on(grid)


def test_a_function_that_forks_has_one_result(each_module_grid: Grid) -> None:
    for _ in range(10):
        call = each_module_grid.function("bad/forks").submit()
        assert call.result(LONG)[0] == call.profile.pid
    assert each_module_grid.function("bad/forks_and_waits")()[0] == 7
    assert each_module_grid.function("bad/runs")("exit 3")[0] >> 8 == 3
    assert goes_on(each_module_grid)


def test_a_thread_that_is_left_behind_does_no_harm(own_module_grid: Grid) -> None:
    for _ in range(5):
        own_module_grid.function("bad/leaves_a_thread")()
    assert goes_on(own_module_grid)


def test_a_function_that_closes_all_files_loses_its_worker(each_module_grid: Grid) -> None:
    with pytest.raises(gridrpc.WorkerLost):
        each_module_grid.function("bad/closes_everything")(deadline=LONG)
    assert goes_on(each_module_grid)


def test_a_function_that_ignores_signals_ends_with_its_grid(compile_idl: CompileIdl) -> None:
    before = descendants()
    with opened(workers=1, worker="native", modules=[compile_idl(IDL)]) as grid:
        call = grid.function("bad/ignores_signals").submit()
        with pytest.raises(TimeoutError):
            call.result(0.3)
    assert until(lambda: descendants() <= before)


@pytest.mark.parametrize("worker", ["native", "python"])
@pytest.mark.parametrize("output", ["plain", "labelled"])
def test_what_functions_print(
    compile_idl: CompileIdl, tmp_path: Path, worker: str, output: str
) -> None:
    ran = run_script(
        tmp_path,
        f"""
        import gridrpc

        with gridrpc.Grid(workers=1, worker={worker!r}, output={output!r},
                          modules=[{str(compile_idl(IDL))!r}]) as grid:
            prints = grid.function("bad/prints")
            prints("one\\ntwo\\n")
            prints("without an end")
            prints(" of line\\n")
            prints("last")
        """,
    )
    assert ran.returncode == 0, ran.stderr
    if output == "plain":
        assert ran.stdout == "one\ntwo\nwithout an end of line\nlast"
        return
    lines = ran.stdout.splitlines()
    texts = [line.partition("] ")[2] for line in lines]
    assert "".join(texts) == "onetwowithout an end of linelast"
    assert all("worker 0" in line.partition("] ")[0] for line in lines), lines
    assert ran.stdout.endswith("\n")


CPP = r"""
Module thrown;
Globals {
    #include <cstdlib>
    #include <stdexcept>
    #include <unistd.h>
    namespace app { struct Odd {}; }
}
Define throws(IN int x, OUT int process[1]) Language "C++"
{
    if (x == 1) throw std::runtime_error("no more of that");
    if (x == 2) throw app::Odd();
    *process = getpid();
}
Define price(IN int x, OUT int r[1])
{
    if (x == 3) throw std::runtime_error("no price");
    if (x == 8 || x == 9) exit(x);
    *r = 2 * x;
}
DefClass Total {
    DefState { static int total; }
    DefMethod add(IN int x, OUT int now[1])
        { if (x < 0) throw std::invalid_argument("negative"); *now = total += x; }
}
Define complex(IN dcomplex z, OUT dcomplex r[1]) Language "C++" { *r = z * std::conj(z); }
"""


@pytest.mark.parametrize("worker", ["native", "python"])
def test_an_exception_of_cpp_is_an_error_and_the_worker_continues(
    compile_idl: CompileIdl, worker: str
) -> None:
    with opened(workers=1, worker=worker, modules=[compile_idl(CPP)]) as grid:
        assert grid.function("thrown/complex")(3 - 4j)[0] == 25
        process = grid.function("thrown/throws")(0)[0]
        for what, kind, message in [
            (1, "std::runtime_error", "no more of that"),
            (2, "app::Odd", "a C++ exception of type app::Odd"),
        ]:
            with pytest.raises(gridrpc.RemoteError) as raised:
                grid.function("thrown/throws")(what)
            assert raised.value.type_name == kind
            assert str(raised.value) == f"{kind}: {message}"
        assert grid.function("thrown/throws")(0)[0] == process
        # An object continues as well, with its state.
        with grid.object("thrown/Total") as total:
            assert total.add(5).tolist() == [5]
            with pytest.raises(gridrpc.RemoteError, match="std::invalid_argument: negative"):
                total.add(-1)
            assert total.add(2).tolist() == [7]


@pytest.mark.parametrize("chunk", [1, 4, 20, "auto"])
@pytest.mark.parametrize("worker", ["native", "python"])
def test_an_exception_or_an_exit_costs_its_item_alone(
    compile_idl: CompileIdl, worker: str, chunk: int | str
) -> None:
    with opened(workers=2, worker=worker, modules=[compile_idl(CPP)]) as grid:
        priced = grid.function("thrown/price")
        results = list(grid.map(priced, range(20), chunk=chunk, return_exceptions=True))
        bad = {3: "std::runtime_error", 8: "gridrpc.FunctionExited", 9: "gridrpc.FunctionExited"}
        for item, result in enumerate(results):
            if item in bad:
                assert isinstance(result, gridrpc.RemoteError)
                assert result.type_name == bad[item]
            else:
                assert result.tolist() == [2 * item]
