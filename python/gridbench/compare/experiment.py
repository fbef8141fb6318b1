"""The comparison of commands as an `Experiment`: warm-up, A/A check, and rounds."""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import os
import random
import select
import shutil
import signal
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import IO, Any

from gridbench.compare.figures import compare_commands, complete_rounds, precise
from gridbench.compare.options import ComparisonParameters
from gridbench.compare.record import (
    FORM,
    Command,
    ComparisonFile,
    ComparisonRound,
    Execution,
    PlannedComparisonRound,
    filled,
    rounds_in,
)
from gridbench.compare.result_kind import COMPARE
from gridbench.errors import InputError, print_error
from gridbench.experiment import Bench, Experiment
from gridbench.jsonl_store import Header
from gridbench.machine.judgement import disturbed, judged, tolerated
from gridbench.machine.judgement import disturbed_sentence as told_disturbed
from gridbench.machine.load import ClockReading, reading
from gridbench.machine.options import Policy
from gridbench.machine.processes import processor_time
from gridbench.process.child import LOOK
from gridbench.process.children import Leftovers
from gridbench.process.interrupt import Stopped
from gridbench.progress import Steps
from gridbench.quantities import AUTO
from gridbench.results_folder import say_what_is_there

FEWEST, MOST = 10, 50
"""Rounds with `auto`, within the time limit."""
_ENOUGH_LOAD = 0.5
"""Seconds over which load is measured: the kernel's clocks are too coarse for less."""
_CONTROL_SHARE = 0.2
"""Largest share of the time limit for the A/A check."""


class ComparisonExperiment(Experiment[PlannedComparisonRound, ComparisonRound]):
    """Rounds in which each command runs once."""

    kind = COMPARE
    name = "compare"
    noun = "round"
    shows_progress = True

    def __init__(self, parameters: ComparisonParameters, policy: Policy) -> None:
        """InputError for commands that cannot be compared or found."""
        self.parameters = parameters
        self.seed = parameters.seed
        self._policy = policy
        self._commands = parameters.commands
        for one in self._commands:
            check_program(one.words(shell=parameters.shell))
        self._file: ComparisonFile | None = None
        self._steps: Steps | None = None
        self._random = random.Random()
        self._moments: deque[ClockReading] = deque()
        self._problem = ""

    def record(self) -> dict[str, Any]:
        """Commands and options."""
        return self.parameters.record()

    def open(self, folder: Path, header: Header, *, fresh: bool) -> ComparisonFile:
        """The file of all runs."""
        self._file = ComparisonFile(FORM.open(folder, header, fresh=fresh))
        self._random.seed(f"{self.seed}/{len(self._file.runs)}")
        return self._file

    def read(self, folder: Path) -> list[ComparisonRound]:
        """All rounds."""
        return rounds_in(FORM.read(folder)[1])

    def batches(
        self, bench: Bench, records: Sequence[ComparisonRound]
    ) -> Iterator[Sequence[PlannedComparisonRound]]:
        """The A/A check, then rounds until there are enough or the time is over."""
        own = self.parameters
        done = set(complete_rounds(self._commands, self._runs))
        wanted = FEWEST if own.rounds == AUTO else own.rounds
        say_what_is_there(bench.console, len(done), max(wanted, len(done)), "round")
        if self._complete():
            return
        bench.stack.enter_context(Leftovers())
        self._moments.append(reading(os.getpid()))
        began = time.monotonic()
        if not self._warm_up(bench):
            return
        there = {one.round for one in records if one.phase == "control"}
        todo = [number for number in range(own.control) if number not in there]
        control_began = time.monotonic()
        with Steps(bench.console, "A/A check, round", len(todo)) as self._steps:
            for number in todo:
                over = time.monotonic() - control_began > _CONTROL_SHARE * own.limit
                if over or self._problem:
                    break
                yield [PlannedComparisonRound(phase="control", round=number)]
        expected = [] if own.rounds == AUTO else [own.rounds - len(done)]
        with Steps(bench.console, "round", *expected) as self._steps:
            for number in (number for number in itertools.count() if number not in done):
                over = time.monotonic() - began > own.limit
                if self._problem or self._complete() or (over and self._compared()):
                    return
                yield [PlannedComparisonRound(phase="compare", round=number)]

    def run(self, case: PlannedComparisonRound, bench: Bench) -> ComparisonRound:
        """Run each command once, in random order. Stopped also if one fails."""
        assert self._steps is not None
        own = self._commands
        order, what = [(one, False) for one in own], f"{len(own)} commands"
        if case.phase == "control":
            order, what = [(own[0], False), (own[0], True)], own[0].name
        self._steps.begin(what)
        began = time.monotonic()
        made = []
        for place, (command, twin) in enumerate(self._random.sample(order, len(order))):
            at = time.strftime("%Y-%m-%dT%H:%M:%S%z")
            usage = self._measure(command, bench, f"round {case.round + 1}")
            made.append(
                Execution(
                    phase=case.phase, round=case.round, place=place, command=command.name,
                    twin=twin, at=at, wall=usage.wall, user=usage.user, system=usage.system,
                    memory=usage.memory, exit_status=usage.exit_status,
                )
            )  # fmt: skip
        load = self._load()
        self._steps.end(time.monotonic() - began)
        runs = tuple(replace(run, load=load) for run in made)
        return ComparisonRound(phase=case.phase, round=case.round, runs=runs)

    def outcome(self, record: ComparisonRound) -> str:
        """Nothing: there are many rounds."""
        del record
        return ""

    def print_problems(self, records: list[ComparisonRound]) -> None:
        """Print why a command failed."""
        del records
        if self._problem:
            print_error(self._problem)

    def exit_status(
        self,
        cases: Sequence[PlannedComparisonRound],
        records: list[ComparisonRound],
        policy: Policy,
        report: int,
    ) -> int:
        """1 if a command failed, 3 if other programs disturbed too many rounds for a claim."""
        del cases
        if self._problem:
            return 1
        found = compare_commands(self._commands, [run for one in records for run in one.runs])
        claims = found is not None and not (found.provisional and found.disturbed)
        return report or policy.exit_status(claims=claims)

    @property
    def _runs(self) -> list[Execution]:
        assert self._file is not None
        return self._file.runs

    def _compared(self) -> list[ComparisonRound]:
        assert self._file is not None
        return [one for one in self._file.records if one.phase == "compare"]

    def _complete(self) -> bool:
        """Whether there are enough rounds. Disturbed ones are measured again, unless they are
        accepted, until this call has made twice as many rounds as requested."""
        assert self._file is not None
        accepted, rounds = self._policy.accept, self.parameters.rounds
        busy = {one.round for one in self._compared() if disturbed(one)}
        done = set(complete_rounds(self._commands, self._runs))
        counting = done if accepted else done - busy
        new = sum(one.phase == "compare" for one in self._file.records[self._file.earlier :])
        if rounds != AUTO:
            return len(counting) >= rounds or new >= 2 * rounds
        if len(counting) < FEWEST:
            return new >= 2 * FEWEST
        answer = compare_commands(self._commands, self._runs)
        return len(done) >= MOST or precise(answer) or bool(accepted and busy)

    def _warm_up(self, bench: Bench) -> bool:
        """Run each command before the rounds; whether to continue."""
        times = self.parameters.warm_up
        try:
            with Steps(bench.console, "warm-up", times) as self._steps:
                for _ in range(times):
                    self._steps.begin("all commands once")
                    for command in self._commands:
                        self._measure(command, bench, "warm-up")
        except Stopped:
            return False
        return True

    def _load(self) -> dict[str, Any]:
        """The load by other programs since the round began, or a little earlier for a short one."""
        short = self._moments[0].at + _ENOUGH_LOAD - time.monotonic()
        if short > 0:
            time.sleep(short)
        now = reading(os.getpid())
        while len(self._moments) > 1 and now.at - self._moments[1].at >= _ENOUGH_LOAD:
            self._moments.popleft()
        load = now.load_since(self._moments[0])
        self._moments.append(now)
        judgement = judged(load)
        return {
            "processors": os.cpu_count(),
            "tolerated": tolerated(),
            "judged": asdict(load),
            "judgement": judgement,
            "told": told_disturbed(load) if judgement == "disturbed" else "",
        }

    def _measure(self, command: Command, bench: Bench, when: str) -> Usage:
        """Prepare, run, clean up. Stopped after Ctrl-C, or if one of these fails."""
        own = self.parameters
        bench.interrupt.check()
        self._helper("--prepare", own.prepare, command, bench)
        usage = execute(
            command.words(shell=own.shell),
            input=own.input,
            output=own.output,
            glance=lambda: self._glance(bench),
        )
        self._helper("--cleanup", own.cleanup, command, bench)
        if usage.exit_status and not own.ignore_failure:
            hint = "\nhint: --ignore-failure measures it nevertheless"
            self._stop(command.line, usage, when, hint)
        return usage

    def _helper(self, option: str, line: str, command: Command, bench: Bench) -> None:
        if not line:
            return
        text = filled(line, command.parameters)
        usage = execute(["/bin/sh", "-c", text], glance=lambda: self._glance(bench))
        if usage.exit_status:
            self._stop(text, usage, option)

    def _stop(self, line: str, usage: Usage, when: str, hint: str = "") -> None:
        errors = "".join(f"\n  {line}" for line in usage.errors.splitlines()[-5:])
        self._problem = (
            f"`{line}` ended with exit status {usage.exit_status} ({when}){errors}{hint}"
        )
        raise Stopped

    def _glance(self, bench: Bench) -> None:
        assert self._steps is not None
        bench.interrupt.check()
        self._steps.glance()


# ---- One run of a command

_HELD = 'echo $$ >&4; read -r _ <&3; exec 3<&- 4>&- "$@"'
_GRACE = 3.0  # seconds from SIGTERM to SIGKILL
_ABOVE = 10  # descriptors from here on are not those that a child gets
_PART = 1 << 20  # bytes
_TAIL = 2000  # bytes of standard error that are shown


@dataclass(frozen=True, slots=True)
class Usage:
    """Resources that a command used; seconds and bytes."""

    wall: float
    user: float
    system: float
    memory: int
    exit_status: int
    """128 + n if signal n ended it."""
    errors: str
    """The last part of its standard error."""


def check_program(words: Sequence[str]) -> None:
    """InputError if the program cannot be found."""
    if shutil.which("setsid") is None:
        raise InputError("setsid is not installed", remedy="apt-get install util-linux")
    if shutil.which(words[0]) is None:
        raise InputError(
            f"there is no program `{words[0]}`",
            remedy="check its path; commands of the shell itself need --shell",
        )


def execute(
    words: Sequence[str], *, input: str = "", output: str = "null", glance: Callable[[], object]
) -> Usage:
    """Run a command in a process group of its own until it ends. `glance` is called ten times a
    second and may raise: then the group is ended. Processes that the command leaves are killed.

    This process must be the one that adopts orphans. InputError if a file cannot be opened.
    """
    with contextlib.ExitStack() as stack:
        errors = stack.enter_context(tempfile.TemporaryFile())
        source = _opened(input or os.devnull, os.O_RDONLY, stack)
        target = _output(output, stack)
        go_read, go = _pipe(stack)
        ready, ready_write = os.pipe()
        stack.callback(os.close, ready)
        with os.fdopen(ready_write), contextlib.ExitStack() as copies:
            descriptors = (source, target, errors.fileno(), go_read, ready_write)
            actions = [
                (os.POSIX_SPAWN_DUP2, _copy(descriptor, copies), place)
                for place, descriptor in enumerate(descriptors)
            ]
            pid = os.posix_spawnp(
                "setsid",
                ["setsid", "--fork", "/bin/sh", "-c", _HELD, "sh", *words],
                os.environ,
                file_actions=actions,
                # Python ignores these, and what is ignored stays so.
                setsigdef=[signal.SIGPIPE, signal.SIGXFSZ],
            )
        os.waitpid(pid, 0)
        reported = os.read(ready, 20)
        if not reported:
            raise InputError(f"`{words[0]}` cannot be started: {_tail(errors)}")
        command = int(reported)
        exit_of = os.pidfd_open(command)
        stack.callback(os.close, exit_of)
        before = processor_time(command) or 0.0
        began = time.monotonic()
        os.write(go, b"\n")
        try:
            ended = _wait(exit_of, glance)
        except BaseException:
            _end(command, exit_of)
            raise
        wall = ended - began
        # Its id is its own until it has been waited for.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(command, signal.SIGKILL)
        _, status, usage = os.wait4(command, 0)
        _reap(command)
        processors = usage.ru_utime + usage.ru_stime
        share = max(0.0, 1 - before / processors) if processors else 0.0
        code = os.waitstatus_to_exitcode(status)
        return Usage(
            wall,
            usage.ru_utime * share,
            usage.ru_stime * share,
            usage.ru_maxrss * 1024,
            code if code >= 0 else 128 - code,
            _tail(errors),
        )


def _wait(exit_of: int, glance: Callable[[], object]) -> float:
    """Return the time when it ends."""
    poll = select.poll()
    poll.register(exit_of, select.POLLIN)
    while not poll.poll(LOOK * 1000):
        glance()
    return time.monotonic()


def _end(command: int, exit_of: int) -> None:
    """End a command and its group, and wait for it."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(command, number)
        if select.select([exit_of], [], [], _GRACE)[0]:
            break
    with contextlib.suppress(ProcessLookupError):
        os.killpg(command, signal.SIGKILL)
    os.waitpid(command, 0)
    _reap(command)


def _reap(group: int) -> None:
    """Wait for the killed processes of the group that this process has adopted."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-group, os.WNOHANG)[0]:
            pass


def _output(output: str, stack: contextlib.ExitStack) -> int:
    """The descriptor for standard output."""
    if output == "inherit":
        return 1
    if output == "pipe":
        reader, writer = os.pipe()
        stack.callback(os.close, writer)
        threading.Thread(target=_drain, args=(reader,), daemon=True).start()
        return writer
    path = os.devnull if output == "null" else output
    return _opened(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, stack)


def _drain(reader: int) -> None:
    """Read all of a pipe and drop it."""
    with open(reader, "rb", buffering=0) as file:
        while file.read(_PART):
            pass


def _opened(path: str, flags: int, stack: contextlib.ExitStack) -> int:
    try:
        descriptor = os.open(path, flags | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise InputError(f"cannot be opened: {error.strerror}", file=path) from None
    stack.callback(os.close, descriptor)
    return descriptor


def _pipe(stack: contextlib.ExitStack) -> tuple[int, int]:
    ends = os.pipe()
    for end in ends:
        stack.callback(os.close, end)
    return ends


def _copy(descriptor: int, stack: contextlib.ExitStack) -> int:
    """A copy outside the range of descriptors that a child gets."""
    copy = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _ABOVE)
    stack.callback(os.close, copy)
    return copy


def _tail(file: IO[bytes]) -> str:
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - _TAIL))
    return file.read().decode(errors="replace").strip()
