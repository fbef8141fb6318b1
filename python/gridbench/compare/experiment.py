"""The comparison of commands as an `Experiment`: warm-up, A/A check, and rounds."""

from __future__ import annotations

import itertools
import os
import random
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from gridbench.compare import result_kind
from gridbench.compare.execution import Usage, check_program, execute
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
from gridbench.errors import print_error
from gridbench.experiment import Bench, Experiment
from gridbench.jsonl_store import Header
from gridbench.machine.judgement import disturbed, judged, tolerated
from gridbench.machine.judgement import disturbed_sentence as told_disturbed
from gridbench.machine.load import ClockReading, reading
from gridbench.machine.options import Policy
from gridbench.process.interrupt import Stopped
from gridbench.process.leftovers import Leftovers
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

    kind = result_kind
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
