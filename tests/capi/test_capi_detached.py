"""Detached calls of programs in C and Fortran."""

from __future__ import annotations

import os
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SECONDS = 60

IDL = """
Module stored;
Globals {
    #include <fcntl.h>
    #include <stdlib.h>
    #include <unistd.h>
}
Define scale(IN long n, IN double a, IN double x[n], OUT double y[n])
    { for (long i = 0; i < n; i++) y[i] = a * x[i]; }
Define wait(IN string gate)
    { while (access(gate, F_OK)) usleep(1000); }
Define held(IN string log, IN string gate, IN long n, INOUT double x[n])
    {
        int file = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
        if (write(file, "x", 1) != 1) abort();
        close(file);
        while (access(gate, F_OK)) usleep(1000);
        for (long i = 0; i < n; i++) x[i] += 1;
    }
"""


@contextmanager
def serving(prefix, folder, limits=""):
    """The URL of a server with these limits."""
    # Programs find modules in their own folder.
    offered = folder / "offered"
    offered.mkdir()
    (offered / "stored.idl").write_text(IDL)
    program = prefix / "bin/gridrpc"
    subprocess.run([program, "compile", "stored.idl"], cwd=offered, check=True, timeout=SECONDS)
    config = folder / "server.toml"
    state = folder / "state"
    config.write_text(
        f'[server]\nname = "lab"\nstate = "{state}"\n[workers]\ncount = 2\n'
        f'[modules]\nfiles = ["{offered}/stored.so"]\n{limits}'
    )
    with (folder / "printed").open("wb") as printed:
        running = subprocess.Popen([program, "server", "-c", config, "start"], stderr=printed)
    try:
        begin = time.monotonic()
        while b" listens at " not in (folder / "printed").read_bytes():
            assert running.poll() is None
            assert time.monotonic() - begin < SECONDS
            time.sleep(0.01)
        yield f"gridrpc+unix://{state}/socket"
    finally:
        running.terminate()
        running.wait(timeout=SECONDS)


@pytest.fixture
def server(prefix, tmp_path):
    """The URL of a server."""
    with serving(prefix, tmp_path) as url:
        yield url


def test_a_program_in_c_takes_the_result_of_another(run, server, tmp_path):
    def ran(*arguments):
        return run("detached.c", *arguments, GRIDRPC_SERVERS=server, GRIDRPC_MODULE_PATH="")

    gate = tmp_path / "gate"
    scaled, waits, short = ran("detach", str(gate)).stdout.splitlines()
    assert scaled.startswith(f"{server}/d/")
    assert "GRPC_DETACHED_ID_SIZE_NP" in short
    for _ in range(2):
        assert ran("attach", scaled).stdout == "2 4 6 8 10\n"
    assert "cancelled" in ran("cancel", waits).stdout
    assert (
        ran("attach", f"{server}/d/{'0' * 32}").stdout == "there is no such session, or no longer\n"
    )


def test_a_server_continues_with_a_call_that_runs(run, server, tmp_path):
    def ran(*arguments):
        return run("detached.c", *arguments, GRIDRPC_SERVERS=server, GRIDRPC_MODULE_PATH="")

    log, gate = tmp_path / "log", tmp_path / "gate"
    # It ends while the call runs.
    one, again, ended = ran("leave", str(log), str(gate)).stdout.splitlines()
    assert one == again
    assert "has ended" in ended
    gate.touch()
    assert ran("take", one, str(log), str(gate)).stdout == "2 3 4 5 6\n"
    assert log.read_text() == "x", "the function has run once"


def test_a_program_in_fortran_takes_its_result(prefix, server, tmp_path):
    assert fortran(prefix, server, tmp_path, "detached.f90") == "ok\n"


def fortran(prefix, server, tmp_path, name):
    """What a program in Fortran prints that calls this server."""
    program = tmp_path / "program"
    sources = [HERE / "fortran" / source for source in ("check.f90", name)]
    environment = {**os.environ, "PKG_CONFIG_PATH": f"{prefix}/lib/pkgconfig"}
    command = ["pkg-config", "--cflags", "--libs", "gridrpc-fortran"]
    flags = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    compiler = [os.environ.get("FC", "gfortran"), "-std=f2018", "-Wall", *sources, "-o", program]
    compiler += [*flags.stdout.split(), f"-Wl,-rpath,{prefix}/lib"]
    subprocess.run(compiler, cwd=tmp_path, check=True, timeout=SECONDS)
    environment |= {"GRIDRPC_SERVERS": server, "HOME": str(tmp_path), "GRIDRPC_MODULE_PATH": ""}
    done = subprocess.run(
        [program], env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=SECONDS,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_calls_above_a_limit_of_the_server_are_not_sent(run, prefix, tmp_path):
    with serving(prefix, tmp_path, "[everyone]\nbytes = '1 MiB'\n") as server:
        printed = run("oversized.c", GRIDRPC_SERVERS=server, GRIDRPC_MODULE_PATH="").stdout
        assert fortran(prefix, server, tmp_path, "oversized.f90") == "ok\n"
        code, detail = printed.splitlines()
        assert code == "the server refused the call"
        assert "the limit `bytes` of user" in detail
        assert "would have 8000016 bytes, and 1048576 may be held" in detail
        socket = server.removeprefix("gridrpc+unix://")
        assert detail.endswith(f"nothing was sent to server `{socket}`")
        # The server's log of what it has refused is empty.
        audit = (tmp_path / "state" / "audit.jsonl").read_text()
        assert '"limit"' not in audit
