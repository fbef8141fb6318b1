"""From an interface description to a program that runs, with the tools that are installed."""

from __future__ import annotations

import json
import os
import subprocess

import pytest

IDL = """
#define SIZE 3
Module sample;
Globals {
#include <math.h>
}
Library "-lm";
Define roots(IN int n, IN double x[n], OUT double y[n])
{
    for (int i = 0; i < n; i++)
        y[i] = sqrt(x[i]);
}
Define three(OUT double x[SIZE]) { for (int i = 0; i < 3; i++) x[i] = i; }
DefClass Sum {
    DefState { static double sum; }
    DefMethod add(IN double x, OUT double now[1]) { *now = sum += x; }
}
"""

CLIENT = """
#include <grpc.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    grpc_function_handle_t roots;
    double x[] = {4, 9}, y[2];
    (void)argc;
    if (grpc_initialize(argv[1]) || grpc_function_handle_default(&roots, "sample/roots") ||
        grpc_call(&roots, 2, x, y)) {
        grpc_perror_np("roots");
        return 1;
    }
    printf("%g %g\\n", y[0], y[1]);
    return grpc_finalize();
}
"""

#: The same of a module that the tests have.
OTHER_CLIENT = CLIENT.replace("sample/roots", "cases/mmul").replace("2, x, y", "1, x, x, y")


def test_a_module_and_a_program_are_built_as_with_ninf_g(prefix, tmp_path):
    (tmp_path / "sample.idl").write_text(IDL)
    (tmp_path / "client.c").write_text(CLIENT)

    def command(*words):
        environment = {**os.environ, "PATH": f"{prefix}/bin:{os.environ['PATH']}"}
        for name in ("GRIDRPC_PROGRAM", "GRIDRPC_MODULE_PATH"):
            environment.pop(name, None)
        environment["HOME"] = str(tmp_path)
        done = subprocess.run(
            words,
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    command("ng_gen", "sample.idl")
    command("make", "-f", "sample.mak")
    for name in ("sample.so", "sample.nrf", "_stub_roots", "_stub_Sum"):
        assert (tmp_path / name).exists()
    command("ng_cc", "-O2", "-c", "client.c")
    command("ng_cc", "-o", "client", "client.o")
    (tmp_path / "client.conf").write_text(
        "<SERVER>\nhostname localhost\n</SERVER>\n"
        f"<FUNCTION_INFO>\nhostname localhost\nfuncname sample/roots\npath {tmp_path}/_stub_roots\n"
        "</FUNCTION_INFO>\n"
    )
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    assert command("./client", "client.conf") == "2 3\n"
    assert command("sh", "-c", f"cd {folder} && ../client ../client.conf") == "2 3\n"


def test_the_makefile_of_ng_gen_needs_no_path(prefix, tmp_path):
    (tmp_path / "sample.idl").write_text(IDL)
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    for command in (
        [prefix / "bin/ng_gen", "sample.idl"],
        ["make", "-f", "sample.mak"],
        ["make", "-f", "sample.mak", "veryclean"],
    ):
        subprocess.run(command, cwd=tmp_path, env=environment, check=True, timeout=120)
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"sample.idl"}


@pytest.mark.parametrize("standard", ["c99", "c11", "c++17"])
def test_programs_in_other_standards(prefix, modules, tmp_path, standard):
    source = tmp_path / "client.c"
    source.write_text(CLIENT.replace("sample/roots", "cases/mmul").replace("2, x, y", "1, x, x, y"))
    compiler = "c++" if "+" in standard else "cc"
    language = ["-x", "c++"] if "+" in standard else []
    command = [compiler, f"-std={standard}", "-Wall", "-Wextra", "-Wpedantic", "-Werror", *language]
    libraries = [f"-I{prefix}/include", f"-L{prefix}/lib", f"-Wl,-rpath,{prefix}/lib", "-lgridrpc"]
    program = tmp_path / "client"
    subprocess.run(
        [*command, "-o", program, source, "-x", "none", *libraries], check=True, timeout=60
    )
    environment = {"PATH": os.environ["PATH"], "GRIDRPC_MODULE_PATH": str(modules)}
    done = subprocess.run(
        [program], env=environment, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.startswith("16 ")


def test_the_calls_of_a_program_are_traced(prefix, modules, tmp_path):
    program = built(prefix, tmp_path, OTHER_CLIENT)
    environment = {
        "PATH": os.environ["PATH"],
        "GRIDRPC_MODULE_PATH": str(modules),
        "GRIDRPC_TRACE": str(tmp_path / "trace"),
    }
    subprocess.run([program], env=environment, timeout=60, check=True)
    (folder,) = (tmp_path / "trace").iterdir()
    assert folder.name.startswith("client-")
    (line,) = (folder / "timeline.journal.jsonl").read_text().splitlines()
    assert json.loads(line)[13] == "ok"
    record = json.loads((folder / "run.json").read_text())
    assert (record["status"], record["setup"]["NTasks"]) == ("complete", 1)


def built(prefix, folder, text):
    """The program that a text in C becomes."""
    source = folder / "client.c"
    source.write_text(text)
    program = folder / "client"
    libraries = [f"-I{prefix}/include", f"-L{prefix}/lib", f"-Wl,-rpath,{prefix}/lib", "-lgridrpc"]
    subprocess.run(["cc", "-o", program, source, *libraries], check=True, timeout=60)
    return program


def test_the_grid_of_a_program_can_be_looked_at(prefix, modules, tmp_path):
    # A shell knows the program that has started it.
    look = 'system("exec $LOOK $PPID --once --json")'
    text = OTHER_CLIENT.replace("return grpc_finalize();", f"return {look} || grpc_finalize();")
    program = built(prefix, tmp_path, f"#include <stdlib.h>\n{text}")
    environment = {
        "PATH": os.environ["PATH"],
        "GRIDRPC_MODULE_PATH": str(modules),
        "LOOK": f"{prefix}/bin/gridrpc top",
    }
    done = subprocess.run(
        [program], env=environment, capture_output=True, text=True, timeout=60, check=True
    )
    message = json.loads(next(line for line in done.stdout.splitlines() if line.startswith("{")))
    (function,) = message["functions"]
    assert (function["name"], function["returned"]) == ("cases/mmul", 1)
    assert message["program"] == str(program)


def test_what_is_installed_is_complete(prefix):
    script = os.path.join(os.path.dirname(__file__), "installed")
    done = subprocess.run(
        [script, prefix], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr + done.stdout
