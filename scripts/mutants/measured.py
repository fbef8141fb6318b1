"""Which tests run which lines, how long they take, and what they import: one run of them tells."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from coverage import CoverageData

from .changes import ROOT, Mutant

#: Programs that tests start note what they run by themselves, as what the test runs.
_OF_PROGRAMS = """\
import os

if "MUTANTS_NOTES" in os.environ and "PYTEST_CURRENT_TEST" in os.environ:
    import atexit

    import coverage

    _coverage = coverage.Coverage(
        data_file=os.path.join(os.environ["MUTANTS_NOTES"], "lines"),
        data_suffix=True,
        config_file=False,
        include=os.environ["MUTANTS_SOURCES"].split(":"),
        context=os.environ["PYTEST_CURRENT_TEST"],
    )
    _coverage.start()
    atexit.register(_coverage.save)
    atexit.register(_coverage.stop)
"""


class Measured:
    """What was found, for all files of the packages."""

    def __init__(self, folder: Path, packages: Sequence[str], tests: Sequence[str]) -> None:
        """Run the tests once in a copy of the checkout. `tests`: paths relative to it."""
        self._folder = folder
        notes = folder / "target" / "notes"
        notes.mkdir(parents=True)
        (folder / "python" / "sitecustomize.py").write_text(_OF_PROGRAMS)
        sources = [folder / "python" / "gridbench" / package for package in packages]
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(map(str, (folder / "python", ROOT / "scripts"))),
            "MUTANTS_NOTES": str(notes),
            "MUTANTS_SOURCES": ":".join(f"{source}/*" for source in sources),
            "COVERAGE_FILE": str(notes / "lines"),
        }
        command = [
            *(sys.executable, "-m", "pytest", "-q", "-p", "mutants.notes"),
            *("-n", "2", "--dist", "loadfile", "--cov-context=test", "--cov-report="),
            *(f"--cov=gridbench.{package}" for package in packages),
        ]
        if subprocess.run([*command, *tests], cwd=folder, env=environment, check=False).returncode:
            raise SystemExit("test-mutants: tests fail without any change: see above")
        (folder / "python" / "sitecustomize.py").unlink()
        self._read(notes)

    def _read(self, notes: Path) -> None:
        self.seconds: dict[str, float] = {}
        """Of each test."""
        modules: dict[str, None] = {}
        for path in sorted(notes.glob("*.json")):
            noted = json.loads(path.read_text())
            self.seconds |= noted["seconds"]
            modules |= dict.fromkeys(noted["modules"])
        self.modules = list(modules)
        """What tests have imported from outside of the checkout, in this order."""
        self._lines: dict[str, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
        for path in notes.glob("lines*"):
            data = CoverageData(str(path))
            data.read()
            for file in data.measured_files():
                of_file = self._lines[str(Path(file).relative_to(self._folder))]
                for line, contexts in data.contexts_by_lineno(file).items():
                    of_file[line].update(test for one in contexts for test in self._tests_of(one))

    def _tests_of(self, context: str) -> list[str]:
        """pytest-cov notes `file::test|run`, and pytest tells programs `file::test (call)`. What is
        set up for one test, others of its file may use."""
        test = context.rpartition("|")[0] or context.rpartition(" (")[0]
        if context.endswith("|setup"):
            file = test.partition("::")[0]
            return [one for one in self.seconds if one.partition("::")[0] == file]
        return [test] if test else []

    def tests(self, mutant: Mutant, most: float) -> list[str]:
        """Those that may notice a mutant, which take no more than so many seconds together; one at
        least. First those that look at what it changes, then those that run it, of each the
        quickest. Files one after another, the quick ones first."""
        looking, running = self._noticing(mutant)
        chosen: dict[str, list[str]] = defaultdict(list)
        left = most
        for test in (*self._quick_first(looking), *self._quick_first(running - looking)):
            left -= self._takes(test)
            if chosen and left < 0:
                break
            chosen[test.partition("::")[0]].append(test)
        quick_first = sorted(chosen.values(), key=lambda some: sum(map(self._takes, some)))
        return [test for some in quick_first for test in some]

    def _quick_first(self, tests: set[str]) -> list[str]:
        return sorted(tests, key=lambda one: (self._takes(one), one))

    def _takes(self, test: str) -> float:
        """Seconds."""
        return self.seconds.get(test, 0.0)

    def _noticing(self, mutant: Mutant) -> tuple[set[str], set[str]]:
        """All tests in which the name stands that a mutant gives another value, and all that run
        what it changes. Programs import a file whatever they do: of what is run then, those count
        that run where it is used."""
        lines = self._lines[mutant.file]
        tree = ast.parse((self._folder / mutant.file).read_text())
        names = _given_a_value(tree, mutant.line)
        inside, using = _lines_by(tree, mutant.line, names)
        looking = self._looking_at(names)
        for some in (using, inside, set(lines)):
            found = {test for line in some for test in lines.get(line, ())}
            if found:
                return looking, found
        return looking, set()

    def _looking_at(self, names: set[str]) -> set[str]:
        if not names:
            return set()
        found = set()
        for file in {test.partition("::")[0] for test in self.seconds}:
            text = (self._folder / file).read_text()
            if any(name in text for name in names):
                found |= {
                    f"{file}::{one.name}"
                    for one in ast.walk(ast.parse(text))
                    if isinstance(one, ast.FunctionDef) and names & set(map(_name, ast.walk(one)))
                }
        return {test for test in self.seconds if test.partition("[")[0] in found}


def _name(node: ast.AST) -> str:
    """`x` of `x` and of `y.x`."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _given_a_value(tree: ast.Module, line: int) -> set[str]:
    """The names that a statement of the module, or of a class, on this line gives a value."""
    classes = [one.body for one in ast.walk(tree) if isinstance(one, ast.ClassDef)]
    return {
        one.id
        for body in (tree.body, *classes)
        for statement in body
        if isinstance(statement, ast.Assign | ast.AnnAssign)
        and statement.lineno <= line <= (statement.end_lineno or 0)
        for one in ast.walk(statement)
        if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)
    }


def _lines_by(tree: ast.Module, line: int, names: set[str]) -> tuple[set[int], set[int]]:
    """The lines inside of functions; and those which use what this one says: itself inside of a
    function, the whole function if it is of its head, and all with one of the names."""
    inside: set[int] = set()
    using: set[int] = set()
    for one in ast.walk(tree):
        if isinstance(one, ast.FunctionDef):
            body = set(range(one.body[0].lineno, (one.end_lineno or 0) + 1))
            inside |= body
            if one.lineno <= line < one.body[0].lineno:
                using |= body
    if line in inside:
        return inside, {line}
    using |= {
        one.lineno for one in ast.walk(tree) if isinstance(one, ast.expr) and _name(one) in names
    }
    return inside, using & inside
