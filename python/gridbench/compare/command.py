"""The whole of `gridbench compare`: A/A check, warm-up, rounds, and the answer."""

from __future__ import annotations

import itertools
import os
import random
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from rich.console import Console

from gridbench.compare.execution import Usage, check_program, execute
from gridbench.compare.figures import answer_of, precise, rounds_of
from gridbench.compare.present import print_answer, to_record, write_report
from gridbench.compare.record import FORM, Command, Execution, Phase, Setting, filled
from gridbench.errors import print_error
from gridbench.jsonl_store import RecordFile
from gridbench.machine.load import Moment, reading
from gridbench.machine.policy import Policy
from gridbench.machine.quiet import settle
from gridbench.machine.rule import disturbed, judged, tolerated
from gridbench.machine.words import disturbed as told_disturbed
from gridbench.printing import Printing
from gridbench.process.interrupt import Interrupt, Stopped
from gridbench.process.leftovers import Leftovers
from gridbench.progress import Steps
from gridbench.quantities import AUTO
from gridbench.results_folder import (
    default_folder,
    report_in,
    say_stopped,
    say_what_is_there,
)
from gridbench.results_lock import sole_use
from gridbench.run.machine import new_header

FEWEST, MOST = 10, 50
"""Rounds with `auto`, unless the time is over."""
_ENOUGH_LOAD = 0.5  # seconds: of less the kernel's clocks tell too little
_CONTROL_SHARE = 0.2  # of the time limit, for the A/A check at most


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonPlan:
    """What the command line asks for beside what is measured."""

    setting: Setting
    rounds: int | Literal["auto"] = AUTO
    warm_up: int = 1
    """Runs of each command that do not count, in each call."""
    control: int = 5
    """Rounds of the A/A check."""
    limit: float = 300.0
    """Seconds after which no round begins."""
    seed: int = 1
    folder: Path | None = None
    """None: one below `runs`, named after the time."""
    fresh: bool = False
    policy: Policy = field(default_factory=Policy)
    printing: Printing = field(default_factory=Printing)


def run_compare(plan: ComparisonPlan) -> int:
    """Measure what is missing, and answer; the exit status. InputError for bad input.

    0: there is an answer. 1: a command failed. 3: other programs disturbed too many rounds for a
    claim, and that was not accepted. 128 + n: ended by signal n; complete rounds are kept.
    """
    for one in plan.setting.commands:
        check_program(one.words(shell=plan.setting.shell))
    folder = plan.folder or default_folder("compare")
    console = plan.printing.progress()
    with sole_use(folder, console):
        header = new_header(plan.setting.options(), seed=plan.seed)
        file = FORM.open(folder, header, fresh=plan.fresh)
        settle(plan.policy, console)
        problem = ""
        with Interrupt() as interrupt, Leftovers():
            try:
                problem = _Session(plan, file, interrupt, console).run()
            except Stopped:
                pass
            finally:
                file.close()
            status = _tell(folder, plan)
            if interrupt.came:
                say_stopped(console, folder)
                return interrupt.exit_status
        plan.printing.say(f"results: {folder}")
        if problem:
            print_error(problem)
            return 1
        answer = answer_of(plan.setting.commands, FORM.read(folder)[1])
        claims = answer is not None and not (answer.provisional and answer.disturbed)
        return status or plan.policy.exit_status(claims=claims)


def _tell(folder: Path, plan: ComparisonPlan) -> int:
    """Say what the results tell, and write their report; 1 if it cannot be written."""
    runs = FORM.read(folder)[1]
    answer = answer_of(plan.setting.commands, runs)
    if answer is None:
        return 0
    print_answer(plan.printing.tables(), answer)
    plan.printing.document(
        lambda: {"results": folder, **to_record(answer), "runs": [asdict(run) for run in runs]}
    )
    return report_in(folder, write_report)


class _Failed(Exception):
    """A run that ends the comparison, with why."""


class _Session:
    """One call of the program."""

    def __init__(
        self,
        plan: ComparisonPlan,
        file: RecordFile[Execution],
        interrupt: Interrupt,
        console: Console,
    ) -> None:
        self._plan = plan
        self._setting = plan.setting
        self._file = file
        self._interrupt = interrupt
        self._console = console
        self._random = random.Random(f"{plan.seed}/{len(file.records)}")
        self._moments: deque[Moment] = deque()
        self._began = time.monotonic()

    def run(self) -> str:
        """Measure; why it had to stop, if a command failed. Raises Stopped."""
        there = self._file.records
        rounds = set(rounds_of(self._setting.commands, there))
        wanted = FEWEST if self._plan.rounds == AUTO else self._plan.rounds
        say_what_is_there(self._console, len(rounds), max(wanted, len(rounds)), "round")
        if self._complete(rounds):
            return ""
        try:
            self._moments.append(reading(os.getpid()))
            self._warm_up()
            self._control({run.round for run in there if run.phase == "control" and run.twin})
            self._compare(rounds)
        except _Failed as failed:
            return str(failed)
        return ""

    @property
    def _wanted(self) -> int:
        return MOST if self._plan.rounds == AUTO else self._plan.rounds

    def _complete(self, rounds: set[int]) -> bool:
        """Whether there are rounds enough. Disturbed ones are measured again, unless that is
        accepted, until there are twice as many as were asked for."""
        busy = {
            run.round for run in self._file.records if run.phase == "compare" and disturbed(run)
        }
        accepted = self._plan.policy.accept
        counting = rounds if accepted else rounds - busy
        if self._plan.rounds != AUTO:
            return len(counting) >= self._wanted or len(self._new_rounds) >= 2 * self._wanted
        if len(counting) < FEWEST:
            return len(self._new_rounds) >= 2 * FEWEST
        answer = answer_of(self._setting.commands, self._file.records)
        return len(rounds) >= MOST or precise(answer) or bool(accepted and busy)

    @property
    def _new_rounds(self) -> set[int]:
        return {run.round for run in self._file.new if run.phase == "compare"}

    def _warm_up(self) -> None:
        if not self._plan.warm_up:
            return
        with Steps(self._console, "warm-up", self._plan.warm_up) as steps:
            for _ in range(self._plan.warm_up):
                steps.begin("all commands once")
                for command in self._setting.commands:
                    self._measure(command, steps, "warm-up")

    def _control(self, done: set[int]) -> None:
        """The A/A check: the first command against itself, to know the noise."""
        command = self._setting.commands[0]
        todo = [number for number in range(self._plan.control) if number not in done]
        began = time.monotonic()
        with Steps(self._console, "A/A check, round", len(todo)) as steps:
            for number in todo:
                if time.monotonic() - began > _CONTROL_SHARE * self._plan.limit:
                    break
                steps.begin(command.name)
                order = [(command, twin) for twin in (False, True)]
                self._round("control", number, order, steps)

    def _compare(self, rounds: set[int]) -> None:
        """Rounds in which each command runs once, in random order."""
        numbers = (number for number in itertools.count() if number not in rounds)
        done = set(rounds)
        expected = [None] if self._plan.rounds == AUTO else [self._wanted - len(rounds)]
        with Steps(self._console, "round", *expected) as steps:
            for number in numbers:
                over = time.monotonic() - self._began > self._plan.limit
                if self._complete(done) or (over and done):
                    return
                steps.begin(f"{len(self._setting.commands)} commands")
                self._round(
                    "compare", number, [(one, False) for one in self._setting.commands], steps
                )
                done.add(number)

    def _round(
        self, phase: Phase, number: int, order: Sequence[tuple[Command, bool]], steps: Steps
    ) -> None:
        """Run each once, and keep all of them with what other programs did meanwhile."""
        made: list[Execution] = []
        began = time.monotonic()
        for place, (command, twin) in enumerate(self._random.sample(order, len(order))):
            at = time.strftime("%Y-%m-%dT%H:%M:%S%z")
            usage = self._measure(command, steps, f"round {number + 1}")
            made.append(
                Execution(
                    phase=phase, round=number, place=place, command=command.name, twin=twin, at=at,
                    wall=usage.wall, user=usage.user, system=usage.system,
                    memory=usage.memory, exit_status=usage.exit_status,
                )
            )  # fmt: skip
        load = self._load()
        for run in made:
            self._file.add(replace(run, load=load))
        steps.end(time.monotonic() - began)

    def _load(self) -> dict[str, Any]:
        """What others did since the round began, or a little earlier if it was short."""
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

    def _measure(self, command: Command, steps: Steps, when: str) -> Usage:
        """Prepare, run, clean up."""
        self._interrupt.check()
        self._helper("--prepare", self._setting.prepare, command, steps)
        usage = execute(
            command.words(shell=self._setting.shell),
            input=self._setting.input,
            output=self._setting.output,
            glance=lambda: self._glance(steps),
        )
        self._helper("--cleanup", self._setting.cleanup, command, steps)
        if usage.exit_status and not self._setting.ignore_failure:
            raise _Failed(_failure(command.line, usage, when))
        return usage

    def _helper(self, option: str, line: str, command: Command, steps: Steps) -> None:
        if not line:
            return
        text = filled(line, command.parameters)
        usage = execute(["/bin/sh", "-c", text], glance=lambda: self._glance(steps))
        if usage.exit_status:
            raise _Failed(_failure(text, usage, option, remedy=""))

    def _glance(self, steps: Steps) -> None:
        self._interrupt.check()
        steps.glance()


def _failure(
    line: str,
    usage: Usage,
    when: str,
    remedy: str = "\nhint: --ignore-failure measures it nevertheless",
) -> str:
    errors = "".join(f"\n  {line}" for line in usage.errors.splitlines()[-5:])
    return f"`{line}` ended with exit status {usage.exit_status} ({when}){errors}{remedy}"
