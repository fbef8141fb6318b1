"""Somebody who reads a page and does what it says: runs each block as it is printed, in order.

The place is a copy of the checkout as it is after `make install`, except that the fresh environment
of a test run, which has what the wheel has, stands at `.venv`. The terminal is that of a new login:
no environment is active until the page says so. Programs with Dask or Ray run where these are
installed.
"""

from __future__ import annotations

import itertools
import os
import re
import shlex
import shutil
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path

from blocks import ROOT, Block
from frames import framed, is_synopsis
from fresh import Environment, login_variables
from not_run import FAILS, GIVEN, NOT_RUN, SAYS

from gridbench.engines.environments import launch_of
from gridbench.errors import InputError

SECONDS = 180

#: Has `gridbench` take its arguments, and do nothing.
_PARSE = (
    "import click; click.Command.invoke = lambda *_: None; from gridbench.cli import main; main()"
)
#: Packages of other engines: programs that import them run in the environments that `gridbench
#: engines install` makes.
_ENGINES = ("dask", "ray")
#: Languages whose programs are saved, and run by a command of their page.
_SAVED = ("c++", "csv", "go", "java", "javascript", "lisp", "octave", "r")
#: Folders whose files no page changes, so that all pages have the same: copying them takes longer
#: than reading most pages.
_SOURCES = ("crates", "datagrid", "packaging", "python", "scripts", "tests")
_OPEN = "import gridrpc; gridrpc.Grid(config='printed.toml').close()"


class Wrong(Exception):
    """A block that does not do what the page says."""


@dataclass(frozen=True)
class Ran:
    """What a command has said."""

    status: int
    stdout: str
    stderr: str


def copy_checkout(folder: Path) -> None:
    """A copy of the checkout's files, without what is built in it."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    )  # fmt: skip
    for name in listed.stdout.split("\0"):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)


def install(environment: Environment, copy: Path, folder: Path) -> None:
    """Another copy, as the checkout is after `make install`."""

    linked = [copy / name for name in _SOURCES]
    subprocess.run(["cp", "--archive", "--link", *linked, folder], check=True)

    def of_others(place: str, names: list[str]) -> set[str]:
        return {*_SOURCES} & {*names} if Path(place) == copy else set()

    shutil.copytree(copy, folder, ignore=of_others, dirs_exist_ok=True)
    (folder / ".venv").symlink_to(environment.prefix)
    stamps = folder / (".venv/.stamps" + str(folder.resolve()).replace("/", "-"))
    stamps.mkdir()
    for step in ("venv", "packages", "native", "bytecode", "capi"):
        (stamps / step).touch()


def _python_for(program: str) -> str:
    """The command that runs a program: that of the environment which has what it imports."""
    for engine in _ENGINES:
        if re.search(rf"^(?:from|import) {engine}\b", program, re.MULTILINE):
            try:
                command = launch_of(engine).command
            except InputError as error:
                raise Wrong(str(error)) from None
            return shlex.join(command)
    return "python"


class Reader:
    """Reads one page, in `folder`, with a copy of the checkout of its own."""

    def __init__(self, environment: Environment, copy: Path, folder: Path) -> None:
        self.folder = folder / "checkout"
        self._home = folder / "home"
        self._state = folder / "state"
        for one in (self.folder, self._home, self._state):
            one.mkdir()
        install(environment, copy, self.folder)
        self._pip_lock = environment.prefix / "pip.lock"
        self.place = self.folder
        settings = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
        self.variables = {
            **login_variables(),
            # Downloads need not be repeated, and versions are ours.
            "PIP_CACHE_DIR": str(Path.home() / ".cache/pip"),
            "PIP_CONSTRAINT": str(ROOT / "constraints.txt"),
            # pip would compile all modules; Python compiles the few that are used.
            "PIP_COMPILE": "0",
            **settings,
            "HOME": str(self._home),
        }
        #: All that commands have said.
        self.said = ""
        #: What the last block has printed.
        self.printed = ""
        #: What has been done with the blocks, by their places.
        self.done: dict[str, str] = {}

    # ---- The terminal

    def run(self, line: str) -> Ran:
        """A line in the terminal; where it goes to and what it exports stays for the next one."""
        cwd, env = self._state / "cwd", self._state / "env"
        script = f"{line}\nstatus=$?; pwd >{cwd}; env -0 >{env}; exit $status"
        terminal = subprocess.Popen(
            ["bash", "-c", script], cwd=self.place, env=self.variables, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            start_new_session=True,
        )  # fmt: skip
        try:
            stdout, stderr = terminal.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(terminal.pid, signal.SIGKILL)
            terminal.communicate()
            raise Wrong(f"`{line}` has not ended within {SECONDS} s") from None
        if cwd.exists():
            self.place = Path(cwd.read_text().removesuffix("\n"))
            pairs = (pair.partition("=") for pair in env.read_text().split("\0") if pair)
            self.variables = {name: value for name, _, value in pairs if name != "_"}
        self.said += stdout + stderr
        return Ran(terminal.returncode, stdout, stderr)

    def succeed(self, line: str, status: int = 0) -> Ran:
        """A line that ends with this status."""
        ran = self.run(line)
        if ran.status != status:
            raise Wrong(f"`{line}` has ended with status {ran.status}:\n{ran.stdout}{ran.stderr}")
        return ran

    # ---- Pages

    def read(self, blocks: list[Block]) -> list[str]:
        """Goes through a page, and returns what is wrong with it."""
        wrong = []
        if blocks and blocks[0].page in GIVEN:
            self._have(blocks[0].page)
        try:
            for at, block in enumerate(blocks):
                try:
                    self.done[block.place] = self._take(block, blocks[:at], blocks[at + 1 :])
                except Wrong as error:
                    wrong.append(f"{block.place}: {error}")
        finally:
            if blocks and blocks[0].page in GIVEN:
                for command in GIVEN[blocks[0].page].end:
                    self.run(command)
        return wrong

    def _have(self, page: str) -> None:
        given = GIVEN[page]
        for name, text in given.files.items():
            (self.place / name).write_text(text)
        for command in given.commands:
            self.succeed(command)

    def _take(self, block: Block, earlier: list[Block], later: list[Block]) -> str:
        first = block.text.partition("\n")[0]
        if block.kind != "sh" and first in NOT_RUN.get(block.page, {}):
            return "not run"
        if block.kind == "text":
            return self._compare(block, earlier)
        self.printed = ""
        if block.kind == "sh":
            return self._follow(block)
        take = {
            "python": self._run_python,
            "c": self._run_c,
            "fortran": self._run_fortran,
            "idl": self._compile,
            "toml": self._configure,
            **dict.fromkeys(_SAVED, self._refuse_unused),
        }.get(block.kind)
        if take is None:
            kind = f"is of the kind `{block.kind}`" if block.kind else "has no kind"
            raise Wrong(f"the block {kind}, and not_run.py does not have it: {first}")
        if block.name:
            (self.place / block.name).write_text(block.text)
            stem = re.escape(block.name.rpartition(".")[0])
            uses = rf"(?<![\w-]){stem}\.\w+"
            users = ("sh", "lisp", "python") if block.kind == "csv" else ("sh", "lisp")
            if any(re.search(uses, one.text) for one in later if one.kind in users):
                return "saved"
        return take(block, earlier)

    def _follow(self, block: Block) -> str:
        left = NOT_RUN.get(block.page, {})
        done = set()
        for command in block.commands:
            if command in left:
                self._check_what_is_not_run(command)
                if left[command].instead:
                    self.succeed(left[command].instead)
                done.add("not run")
                continue
            line = command
            if command.startswith("pip install "):
                # Pages that are read side by side share the environment.
                line = f"flock {self._pip_lock} {command}"
            ran = self.succeed(line, FAILS.get(block.page, {}).get(command, 0))
            done.add("run")
            self.printed += ran.stdout + ran.stderr
            for pattern in SAYS.get(block.page, {}).get(command, []):
                if not re.search(pattern, ran.stdout + ran.stderr, re.MULTILINE):
                    said = ran.stdout + ran.stderr
                    raise Wrong(f"`{command}` has not said {pattern}, but\n{said}")
            # `make demo` measures on a busy machine as well, and then gridbench warns of that.
            if command.startswith("make") and re.search(
                r"(?<!gridbench: )\bwarning", ran.stderr, re.IGNORECASE
            ):
                raise Wrong(f"`{command}` has warned:\n{ran.stderr}")
        return " and ".join(sorted(done, reverse=True))

    def _check_what_is_not_run(self, command: str) -> None:
        """Its options are right, and what it reads is there."""
        words = shlex.split(command)
        if words[0] == "make":
            self.succeed(f"make --dry-run {shlex.join(words[1:])}")
        elif words[0] == "gridbench":
            # The program itself is looked for as well: the environment has to be active.
            self.succeed(
                f"command -v gridbench && python -c {shlex.quote(_PARSE)} {shlex.join(words[1:])}"
            )
        for before, word in itertools.pairwise(words):
            path = self.place / word
            if before == "--out":
                # Commands that come afterwards may read it.
                (path.parent if path.suffix else path).mkdir(parents=True, exist_ok=True)
                if path.suffix:
                    path.touch()
            elif "://" in word:
                continue
            elif ("/" in word or path.suffix in (".json", ".xml")) and not path.exists():
                raise Wrong(f"`{command}` reads {word}, which nothing on this page has written")

    def _compare(self, block: Block, earlier: list[Block]) -> str:
        """What is printed directly behind a program is its output; else somebody has said it."""
        if block.follows_directly and earlier:
            if self.printed != block.text:
                raise Wrong(f"printed is\n{block.text}but it has said\n{self.printed}")
        elif block.text not in self.said:
            raise Wrong(f"no command of this page has said\n{block.text}")
        return "compared"

    # ---- Programs

    def _run_python(self, block: Block, earlier: list[Block]) -> str:
        del earlier
        (self.place / "program.py").write_text(block.text)
        self.printed = self.succeed(f"{_python_for(block.text)} program.py").stdout
        return "run"

    def _refuse_unused(self, block: Block, earlier: list[Block]) -> str:
        """Programs in these languages are saved, and run by a later command."""
        del earlier
        raise Wrong(f"nothing runs this program: {block.name or 'it has no name'}")

    def _configure(self, block: Block, earlier: list[Block]) -> str:
        del earlier
        (self.place / "printed.toml").write_text(block.text)
        self.succeed(f"python -c {shlex.quote(_OPEN)}")
        return "run"

    def _compile(self, block: Block, earlier: list[Block]) -> str:
        """A module; a part of one becomes a module of its own."""
        del earlier
        named = re.search(r"^Module (\w+);", block.text, re.MULTILINE)
        name = named[1] if named else "fragment"
        text = block.text if named else f"Module fragment;\n{block.text}"
        (self.place / f"{name}.idl").write_text(text)
        self.printed = self.succeed(f"gridrpc compile {name}.idl").stdout
        return "run"

    def _run_fortran(self, block: Block, earlier: list[Block]) -> str:
        """Built by the command that the page has for its first program."""
        commands = [command for one in earlier if one.kind == "sh" for command in one.commands]
        build = next((one for one in commands if one.startswith("gfortran -o first ")), None)
        if build is None:
            raise Wrong("the page has not said yet how programs are built")
        (self.place / "program.f90").write_text(block.text)
        build = build.replace("gfortran -o first ", "gfortran -Wall -o program ")
        build = build.replace("first.f90", "program.f90")
        if warnings := self.succeed(build).stderr:
            raise Wrong(f"the compiler warns:\n{warnings}")
        self.printed = self.succeed("./program").stdout
        return "run"

    def _run_c(self, block: Block, earlier: list[Block]) -> str:
        """A declaration has to agree with the header; statements run in a frame."""
        del earlier
        if is_synopsis(block.text):
            (self.place / "synopsis.c").write_text(block.text)
            check = "cc -std=gnu11 -Wall -Wextra -Werror -fsyntax-only synopsis.c"
            self.succeed(f"{check} $(gridrpc config --cflags)")
            return "run"
        (self.place / "program.c").write_text(framed(block.text))
        self.succeed("cc -std=gnu11 -Wall -o program program.c $(gridrpc config --cflags --libs)")
        ran = self.succeed("./program")
        if ran.stderr:
            raise Wrong(f"it has said:\n{ran.stderr}")
        self.printed = ran.stdout
        return "run"
