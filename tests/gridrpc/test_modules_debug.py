"""Debuggers on the workers that run functions of compiled modules."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from grids import CompileIdl, opened
from processes import LONG, start_script

IDL = """
Module debugged;
Define triple(IN int x, OUT int r[1])
{
    int result = 3 * x;
    *r = result;
}
"""


def test_a_worker_waits_for_a_debugger(compile_idl: CompileIdl, tmp_path: Path) -> None:
    script = start_script(
        tmp_path,
        f"""
        import gridrpc

        with gridrpc.Grid(workers=1, worker="native", debug="wait",
                          modules=[{str(compile_idl(IDL))!r}]) as grid:
            print(grid.function("debugged/triple")(14)[0])
        """,
    )
    try:
        assert script.stderr is not None
        said = script.stderr.readline()
        found = re.search(r"worker 0 waits for a debugger: gdb -p (\d+)", said)
        assert found, said
        commands = [
            "set breakpoint pending on",
            "break gridrpc_body_0_triple",
            "continue",
            "info args",
            "detach",
        ]
        given = [word for command in commands for word in ("-ex", command)]
        debugger = subprocess.run(
            ["gdb", "-nx", "-batch", "-p", found[1], *given],
            capture_output=True, text=True, timeout=LONG, check=False,
        )  # fmt: skip
        assert "x = 14" in debugger.stdout, debugger.stdout + debugger.stderr
        assert "source.idl:" in debugger.stdout, "the line in the IDL file is shown"
        out, err = script.communicate(timeout=LONG)
        assert (out, script.returncode) == ("42\n", 0), err
    finally:
        script.kill()
        script.wait()


def test_a_command_is_run_for_each_worker(compile_idl: CompileIdl, tmp_path: Path) -> None:
    command = f"echo {{pid}} > {tmp_path}/{{worker}}"
    with opened(workers=2, worker="native", debug=command, modules=[compile_idl(IDL)]) as grid:
        grid.wait_until_ready(LONG)
        call = grid.function("debugged/triple").submit(1)
        assert call.result(LONG)[0] == 3
        profile = call.profile
    assert (tmp_path / str(profile.worker)).read_text() == f"{profile.pid}\n"
