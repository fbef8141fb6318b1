"""The program `gridrpc`: compiling modules, the catalogue, and descriptions."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from grids import PROGRAM, CompileIdl, opened

IDL = """
Module shown;
Library "-lm";
Define scale(IN int n, IN double factor, INOUT double x[n]) "Multiplies `x` by a factor"
    Idempotent CalcOrder 2 * n
    { for (int i = 0; i < n; i++) x[i] *= factor; }
Define calls(IN int n, f(IN double x[n], OUT double y[1])) { double x[9], y; f(x, &y); }
DefClass counter "Counts" {
    DefState { static int value; }
    DefMethod add(IN int n, OUT int r[1]) "Adds" { *r = value += n; }
}
"""


class Shell:
    """Runs the program in a folder, with a catalogue of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {**os.environ, "GRIDRPC_CATALOGUE": str(folder / "catalogue")}

    def run(self, *arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [PROGRAM, *map(str, arguments)],
            cwd=self.folder,
            env={**self.environment, **environment},
            capture_output=True,
            text=True,
            check=False,
        )

    def says(self, *arguments: object) -> str:
        ran = self.run(*arguments)
        assert ran.returncode == 0, ran.stderr
        return ran.stdout

    def fails(self, *arguments: object, **environment: str) -> str:
        ran = self.run(*arguments, **environment)
        assert ran.returncode == 1, ran.stdout
        return ran.stderr


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    (tmp_path / "shown.idl").write_text(IDL)
    return Shell(tmp_path)


def test_compile_names_the_module_that_it_made(shell: Shell) -> None:
    assert shell.says("compile", "shown.idl") == "./shown.so\n"
    assert shell.says("compile", "shown.idl", "-o", "a/b") == "a/b/shown.so\n"
    made = {path.name for path in shell.folder.rglob("*")}
    assert made == {"shown.idl", "shown.so", "a", "b"}, "nothing else is left"


def test_compile_keeps_the_source_if_asked(shell: Shell) -> None:
    shell.says("compile", "shown.idl", "--keep-source")
    assert "gridrpc_run_0_scale" in (shell.folder / "shown.stub.c").read_text()


def test_compile_checks_lists_and_writes_makefiles(shell: Shell) -> None:
    assert shell.says("compile", "--check", "shown.idl") == ""
    assert shell.says("compile", "--list", "shown.idl") == "scale\ncalls\ncounter\n"
    assert "STUBS := _stub_scale " in shell.says("compile", "--makefile", "shown.idl")
    assert not (shell.folder / "shown.so").exists()


def test_the_makefile_makes_the_module(shell: Shell) -> None:
    (shell.folder / "shown.mak").write_text(shell.says("compile", "--makefile", "shown.idl"))
    command = ["make", "-f", "shown.mak", f"GRIDRPC={PROGRAM}"]
    subprocess.run(command, cwd=shell.folder, check=True, capture_output=True)
    for name in ("shown.so", "_stub_scale", "_stub_counter"):
        assert (shell.folder / name).exists()


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("Module m; Define f(IN int n, OUT double r[k]) { }", "there is no parameter `k`"),
        ("Module m; Define f(OUT int r) { }", "write `OUT int r[1]`"),
        ("Define f() { }", "the module has no name"),
        ("Module m; Define f();", "nothing says what `f` calls"),
        ("Module m; Define f( { }", "m.idl:1:"),
        ("", "the module has no name"),
    ],
)
def test_errors_of_the_idl_are_shown_with_their_place(shell: Shell, source: str, said: str) -> None:
    (shell.folder / "m.idl").write_text(source)
    error = shell.fails("compile", "m.idl")
    assert said in error
    assert "error" in error
    assert not (shell.folder / "m.so").exists()


def test_errors_of_the_compiler_are_shown_with_the_line_in_the_idl(shell: Shell) -> None:
    (shell.folder / "m.idl").write_text("Module m;\nDefine f(IN int n)\n{\n    n = nonsense;\n}\n")
    error = shell.fails("compile", "m.idl")
    assert "m.idl:4" in error
    assert "nonsense" in error
    assert "could not compile the module" in error


def test_functions_that_are_nowhere_are_errors_of_the_linker(shell: Shell) -> None:
    (shell.folder / "m.idl").write_text('Module m; Define f() Calls "C" nowhere_at_all();')
    assert "nowhere_at_all" in shell.fails("compile", "m.idl")


def test_files_and_compilers_that_are_not_there(shell: Shell) -> None:
    assert "could not read `none.idl`" in shell.fails("compile", "none.idl")
    (shell.folder / "bytes.idl").write_bytes(b"Module m;\n\xff")
    assert "line 2 is not UTF-8" in shell.fails("compile", "bytes.idl")
    missing = shell.fails("compile", "shown.idl", CC="/no/such/compiler")
    assert "could not run the compiler `/no/such/compiler`" in missing
    assert "hint: install it" in missing


def test_options_go_to_compiler_and_linker(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "m.idl").write_text("Module m; Define f(OUT int r[1]) { *r = VALUE; }")
    shell.says("compile", "m.idl", "--", "-DVALUE=7")
    with opened(workers=1, worker="native", modules=[tmp_path / "m.so"]) as grid:
        assert grid.function("m/f")()[0] == 7


def test_required_files_are_looked_for_beside_the_idl(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "part.c").write_text("void part(int *r) { *r = 9; }\n")
    subprocess.run(["cc", "-fPIC", "-c", "part.c"], cwd=tmp_path / "sub", check=True)
    (tmp_path / "sub" / "m.idl").write_text(
        'Module m; Define f(OUT int r[1]) Required "part.o" Calls "C" part(r);'
    )
    shell.says("compile", "sub/m.idl")
    with opened(workers=1, worker="native", modules=[tmp_path / "m.so"]) as grid:
        assert grid.function("m/f")()[0] == 9


def test_the_catalogue(shell: Shell, compile_idl: CompileIdl) -> None:
    assert "no modules are registered" in shell.says("list")
    assert json.loads(shell.says("list", "--json")) == []
    module = compile_idl(IDL)
    assert shell.says("register", module) == "registered module shown\n"
    assert shell.says("register", module) == "registered module shown\n"
    assert shell.says("list") == f"shown  2 functions, 1 classes  {module.resolve()}\n"
    (listed,) = json.loads(shell.says("list", "--json"))
    assert (listed["module"], listed["file"]) == ("shown", str(module.resolve()))
    assert "shown/scale" in shell.says("describe", "shown/scale")
    said = shell.says("unregister", "shown")
    assert said.startswith("module shown is no longer registered")
    assert shell.says("register", module, "-q") + shell.says("unregister", "shown", "-q") == ""
    assert module.exists()
    assert "no module `shown` is registered" in shell.fails("unregister", "shown")


def test_registering_another_module_of_the_same_name_says_so(shell: Shell) -> None:
    for folder in ("a", "b"):
        shell.says("compile", "shown.idl", "-o", folder)
    shell.says("register", "a/shown.so")
    said = shell.says("register", "b/shown.so")
    assert f"in place of {shell.folder.resolve()}/a/shown.so" in said


def test_a_registered_file_that_is_gone_is_listed_as_such(shell: Shell) -> None:
    shell.says("compile", "shown.idl")
    shell.says("register", "shown.so")
    (shell.folder / "shown.so").unlink()
    assert "shown  cannot be used: could not read" in shell.says("list")
    (listed,) = json.loads(shell.says("list", "--json"))
    assert "could not read" in listed["error"]
    shell.says("unregister", "shown")


def test_what_is_no_module_is_not_registered(shell: Shell) -> None:
    (shell.folder / "x.so").write_text("no library")
    assert "is not a module" in shell.fails("register", "x.so")
    assert "could not read `y.so`" in shell.fails("register", "y.so")
    assert not (shell.folder / "catalogue").exists()
    assert "`../x` is registered" in shell.fails("unregister", "../x")


def test_a_catalogue_that_cannot_be_read_is_not_an_empty_one(shell: Shell) -> None:
    (shell.folder / "catalogue").write_text("no folder")
    assert "could not read the catalogue" in shell.fails("list")


def test_descriptions_in_words(shell: Shell) -> None:
    shell.says("compile", "shown.idl")
    text = shell.says("describe", "shown.so")
    for part in ("shown/scale: scale(IN int n", "Multiplies `x`", "idempotent", "cost: 2 * n",
                 "shown/counter.add", "calls  callback(x, y)"):  # fmt: skip
        assert part in text
    one = shell.says("describe", "shown/scale")
    assert "shown/scale" in one
    assert "counter" not in one
    method = shell.says("describe", "shown/counter.add")
    assert method.startswith("shown/counter.add: add(IN int n")


def test_descriptions_for_programs(shell: Shell) -> None:
    shell.says("compile", "shown.idl")
    module = json.loads(shell.says("describe", "shown", "--json"))
    assert [function["name"] for function in module["functions"]] == ["scale", "calls"]
    assert module["classes"][0]["methods"][0]["name"] == "add"
    scale = json.loads(shell.says("describe", "shown/scale", "--json"))
    assert scale["idempotent"] is True
    assert scale["cost"] == "2 * n"
    assert scale["parameters"][2] == {
        "name": "x", "mode": "inout", "type": "double", "dimensions": ["n"],
    }  # fmt: skip
    callback = json.loads(shell.says("describe", "shown/calls", "--json"))["parameters"][1]
    assert callback["mode"] == "calls"
    assert [inner["name"] for inner in callback["callback"]] == ["x", "y"]


def test_a_description_as_idl_can_be_read_again(shell: Shell) -> None:
    shell.says("compile", "shown.idl")
    idl = shell.says("describe", "shown.so", "--idl")
    (shell.folder / "again.idl").write_text(idl)
    assert shell.says("compile", "--list", "again.idl") == "scale\ncalls\ncounter\n"


def test_what_is_not_there_is_not_described(shell: Shell) -> None:
    shell.says("compile", "shown.idl")
    error = shell.fails("describe", "shown/none")
    assert "module `shown` has no function `none`; it has scale, calls" in error
    assert "there is no module `other`" in shell.fails("describe", "other/f")


@pytest.mark.parametrize(
    "command", [["config", "--prefix"], ["describe", "shown"], ["list", "--json"]]
)
def test_a_reader_that_has_gone_and_a_full_disk_end_it_without_a_panic(
    shell: Shell, command: list[str]
) -> None:
    shell.says("compile", "shown.idl")
    read_end, write_end = os.pipe()
    os.close(read_end)
    with open(write_end, "wb") as gone, open("/dev/full", "wb") as full:
        ended, failed = (
            subprocess.run(
                [PROGRAM, *command],
                cwd=shell.folder,
                env=shell.environment,
                stdout=output,
                stderr=subprocess.PIPE,
                text=True,
                check=False,
            )
            for output in (gone, full)
        )
    assert (ended.returncode, ended.stderr) == (-signal.SIGPIPE, "")
    assert failed.returncode == 1
    assert failed.stderr.startswith("gridrpc: could not write to standard output: No space left")
    assert failed.stderr.count("\n") == 1


def test_it_says_its_own_name(shell: Shell) -> None:
    assert shell.says("--version").split()[0] == "gridrpc"


def test_of_what_is_no_idl_a_bounded_number_of_errors_is_shown(shell: Shell) -> None:
    (shell.folder / "README.md").write_text("# Words;\nthat are + no IDL = at all; [ ) ;\n" * 100)
    error = shell.fails("compile", "README.md")
    assert error.count(": error: ") <= 20
    assert "more errors" in error


def test_what_is_made_on_the_way_is_made_in_a_private_folder(shell: Shell) -> None:
    """Where others may write too, a link that they have put there must not be written through."""
    compiler = shell.folder / "compiler"
    compiler.write_text('#!/bin/sh\nstat -c "%a %n" .gridrpc-compile-* >>seen\nexec cc "$@"\n')
    compiler.chmod(0o755)
    victim = shell.folder / "victim"
    victim.write_text("precious")
    (shell.folder / "shown.stub.c").symlink_to(victim)
    for _ in range(2):
        ran = shell.run("compile", "--keep-source", "shown.idl", CC=str(compiler))
        assert ran.returncode == 0, ran.stderr
    seen = set((shell.folder / "seen").read_text().splitlines())
    assert len(seen) == 2, "each run has a new folder"
    assert all(line.startswith("700 ") for line in seen)
    assert victim.read_text() == "precious"
    assert "scale" in (shell.folder / "shown.stub.c").read_text()
    assert not list(shell.folder.glob(".gridrpc-compile-*"))


def test_only_regular_files_are_read_as_modules(shell: Shell) -> None:
    """A FIFO would be waited for, and a device be read until memory ends."""
    shell.says("compile", "shown.idl")
    os.mkfifo(shell.folder / "a.so")
    (shell.folder / "b.so").symlink_to("/dev/zero")
    for name in ("a.so", "b.so"):
        assert "it is not a regular file" in shell.fails("register", name)
    with opened(workers=1, modules=[shell.folder]) as grid:
        # A name without its module is looked for in all files that are there.
        assert "shown/scale" in repr(grid.function("scale"))


@pytest.mark.parametrize(
    "command",
    ["", "agent", "ca", "ca init", "ca install", "ca redeem", "ca request", "ca server", "ca sign",
     "ca token", "compile", "completion", "config", "describe", "doctor", "list", "register",
     "script", "session", "session start", "session stop", "top", "unregister"],
)  # fmt: skip
def test_help_fits_80_columns_also_in_a_pipe(shell: Shell, command: str) -> None:
    ran = shell.run(*command.split(), "--help", COLUMNS="80")
    assert ran.returncode == 0, ran.stderr
    assert [line for line in ran.stdout.splitlines() if len(line) > 80] == []
    assert "\x1b" not in ran.stdout


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("gridrpc ", {"compile", "doctor", "session", "completion"}),
        ("gridrpc session ", {"start", "list", "show", "stop"}),
        ("gridrpc ca ", {"init", "sign", "token", "revoke"}),
        ("gridrpc doctor --", {"--config", "--json", "--quiet"}),
        ("gridrpc completion ", {"bash", "zsh", "fish"}),
    ],
)
def test_bash_completes_commands_and_options(shell: Shell, line: str, offered: set[str]) -> None:
    words = line.split(" ")
    ask = (
        f"COMP_WORDS=({' '.join(repr(word) for word in words)}); COMP_CWORD={len(words) - 1}\n"
        f"_gridrpc gridrpc {words[-1]!r} {words[-2]!r}\n"
        'printf "%s\\n" "${COMPREPLY[@]}"\n'
    )
    script = shell.says("completion", "bash") + ask
    done = subprocess.run(
        ["bash", "--norc", "-c", script], capture_output=True, text=True, check=True
    )
    found = set(done.stdout.split())
    assert offered <= found
    # Those that only programs start.
    assert not found & {"spawner", "rank"}


@pytest.mark.parametrize("shell_name", ["zsh", "fish"])
def test_other_shells_get_a_script_of_theirs(shell: Shell, shell_name: str) -> None:
    head = {"zsh": "#compdef gridrpc\n", "fish": "# Print an optspec"}[shell_name]
    script = shell.says("completion", shell_name)
    assert script.startswith(head)
    assert "session" in script
    assert shell.run("completion", "tcsh").returncode == 2


@pytest.mark.parametrize("language", ["C", "C++"])
def test_the_same_source_gives_the_same_module(shell: Shell, language: str) -> None:
    text = f'Module same; Define f(IN int n, OUT int r[1]) Language "{language}" {{ r[0] = n; }}'
    (shell.folder / "same.idl").write_text(text)
    made = set()
    for _ in range(2):
        shell.says("compile", "same.idl")
        made.add((shell.folder / "same.so").read_bytes())
    assert len(made) == 1


@pytest.mark.parametrize("name", ["pricing.cpp", "model.f90", "part.o"])
def test_source_files_are_no_interface_descriptions(shell: Shell, name: str) -> None:
    (shell.folder / name).write_bytes(b'#include "pricing.hpp"\n\xff')
    error = shell.fails("compile", name)
    assert f"`{name}` is no interface description" in error
    assert "hint: write an IDL file" in error
    assert error.count("\n") == 2
