"""Detached calls of programs in C and Fortran."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SECONDS = 60

IDL = """
Module stored;
Globals {
    #include <unistd.h>
}
Define scale(IN long n, IN double a, IN double x[n], OUT double y[n])
    { for (long i = 0; i < n; i++) y[i] = a * x[i]; }
Define wait(IN string gate)
    { while (access(gate, F_OK)) usleep(1000); }
"""


@pytest.fixture
def server(prefix, tmp_path):
    """The URL of a server."""
    # Programs find modules in their own folder.
    offered = tmp_path / "offered"
    offered.mkdir()
    (offered / "stored.idl").write_text(IDL)
    program = prefix / "bin/gridrpc"
    subprocess.run([program, "compile", "stored.idl"], cwd=offered, check=True, timeout=SECONDS)
    config = tmp_path / "server.toml"
    state = tmp_path / "state"
    config.write_text(
        f'[server]\nname = "lab"\nstate = "{state}"\n[workers]\ncount = 2\n'
        f'[modules]\nfiles = ["{offered}/stored.so"]\n'
    )
    with (tmp_path / "printed").open("wb") as printed:
        running = subprocess.Popen([program, "server", "-c", config, "start"], stderr=printed)
    try:
        begin = time.monotonic()
        while b" listens at " not in (tmp_path / "printed").read_bytes():
            assert running.poll() is None
            assert time.monotonic() - begin < SECONDS
            time.sleep(0.01)
        yield f"gridrpc+unix://{state}/socket"
    finally:
        running.terminate()
        running.wait(timeout=SECONDS)


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


def test_a_program_in_fortran_takes_its_result(prefix, server, tmp_path):
    program = tmp_path / "detached"
    sources = [HERE / "fortran" / name for name in ("check.f90", "detached.f90")]
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
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stderr
