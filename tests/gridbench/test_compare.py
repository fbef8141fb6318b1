"""Comparing the user's own commands: one run, the answer, and the whole command."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from gridbench.compare.document import document_of, headline, notices
from gridbench.compare.experiment import execute
from gridbench.compare.figures import CommandComparison, compare_commands, precise
from gridbench.compare.record import FORM, Command, Execution, commands_of, needs_shell
from gridbench.errors import InputError
from gridbench.jsonl_store import Header
from gridbench.pages.render import page
from gridbench.process.children import Leftovers
from gridbench.process.interrupt import Stopped
from gridbench.result_kind import write_report
from running import PROGRAM, Run, alive, until

MB = 1024 * 1024


@pytest.fixture
def adopting() -> Iterator[None]:
    with Leftovers():
        yield


def python(code: str) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", code]


def nothing() -> None:
    pass


# One run.


@pytest.mark.usefixtures("adopting")
def test_peak_memory_is_that_of_the_command() -> None:
    ours = bytearray(80 * MB)  # what a forked child would begin with
    assert ours
    small = execute(["true"], glance=nothing)
    assert 0 < small.memory < 8 * MB
    large = execute(python(f"b = b'1' * {50 * MB}"), glance=nothing)
    assert 50 * MB < large.memory < 80 * MB


@pytest.mark.usefixtures("adopting")
def test_times_are_those_of_the_command() -> None:
    slept = execute(["sleep", "0.3"], glance=nothing)
    assert 0.3 <= slept.wall < 3
    assert slept.user + slept.system < 0.1
    busy = execute(python("import time\nwhile time.process_time() < 0.3: pass"), glance=nothing)
    assert 0.25 < busy.user + busy.system < 0.6
    assert busy.wall > busy.user


@pytest.mark.usefixtures("adopting")
def test_how_a_command_ends_is_reported() -> None:
    failed = execute(["/bin/sh", "-c", "echo why >&2; exit 3"], glance=nothing)
    assert (failed.exit_status, failed.errors) == (3, "why")
    assert execute(["/bin/sh", "-c", "kill -9 $$"], glance=nothing).exit_status == 137


@pytest.mark.usefixtures("adopting")
def test_output_goes_where_it_is_wanted(tmp_path: Path) -> None:
    source, target = tmp_path / "in", tmp_path / "out"
    source.write_text("data\n")
    execute(["cat"], input=str(source), output=str(target), glance=nothing)
    assert target.read_text() == "data\n"
    # More than a pipe holds, which nobody else reads.
    assert not execute(python("print('x' * 1_000_000)"), output="pipe", glance=nothing).exit_status
    with pytest.raises(InputError, match="cannot be opened"):
        execute(["true"], output=str(tmp_path / "no" / "out"), glance=nothing)


@pytest.mark.usefixtures("adopting")
def test_no_process_outlives_its_run(tmp_path: Path) -> None:
    said = tmp_path / "pid"
    before = set(os.listdir("/proc/self/fd"))
    execute(["/bin/sh", "-c", f"sleep 100 & echo $! > {said}"], glance=nothing)
    until(lambda: not alive(int(said.read_text())))

    def stop() -> None:
        raise Stopped

    with pytest.raises(Stopped):
        execute(["/bin/sh", "-c", f"echo $$ > {said}; sleep 100"], glance=stop)
    until(lambda: not alive(int(said.read_text())))
    assert len(os.listdir("/proc/self/fd")) == len(before)


@pytest.mark.usefixtures("adopting")
def test_a_command_has_the_usual_signals_and_descriptors(tmp_path: Path) -> None:
    said = tmp_path / "said"
    line = "grep SigIgn /proc/self/status; ls /proc/self/fd; ps -o pgid= -p $$; echo $$"
    execute(["/bin/sh", "-c", line], output=str(said), glance=nothing)
    _, ignored, *descriptors, group, own = said.read_text().split()
    assert int(ignored, 16) & 0x7FFF_FFFF == 0  # glibc keeps two further ones to itself
    assert descriptors == ["0", "1", "2", "3"]  # the last is what ls itself opens
    assert group == own


# What to compare.


def test_parameters_are_combined_where_they_stand() -> None:
    found = commands_of(("a {n} {m}", "b {n}", "c ${HOME}"), (), {"n": ("1", "2"), "m": ("x", "y")})
    assert [one.line for one in found] == [
        "a 1 x", "a 1 y", "a 2 x", "a 2 y", "b 1", "b 2", "c ${HOME}",
    ]  # fmt: skip
    assert found[1].parameters == {"n": "1", "m": "y"}
    assert [c.name for c in commands_of(("a {n}",), ("A",), {"n": ("1", "2")})] == [
        "A (n=1)",
        "A (n=2)",
    ]


@pytest.mark.parametrize(
    ("lines", "names", "parameters", "message"),
    [
        (("a",), (), {}, "one command cannot be compared"),
        (("a", "a"), (), {}, "two commands have the name `a`"),
        (("a", "b"), ("A",), {}, "--name is given 1 times, for 2 commands"),
        (("a", "b"), (), {"n": ("1",)}, "no command contains {n}"),
    ],
)
def test_what_cannot_be_compared_is_refused(
    lines: tuple[str, ...],
    names: tuple[str, ...],
    parameters: dict[str, tuple[str, ...]],
    message: str,
) -> None:
    with pytest.raises(InputError, match=message):
        commands_of(lines, names, parameters)


def test_a_shell_is_used_for_all_if_one_needs_it() -> None:
    assert not needs_shell(commands_of(("a 'b c' -x=1", "d /e"), (), {}))
    for line in ("a | b", "N=1 a", "a $HOME", "a > out", "a; b"):
        assert needs_shell(commands_of((line, "d"), (), {}))
    assert Command(name="", line="a 'b c'").words(shell=False) == ["a", "b c"]
    with pytest.raises(InputError, match="no closing quotation"):
        Command(name="", line="a 'b").words(shell=False)


# The answer.


def runs(
    walls: Mapping[str, Sequence[float]],
    *,
    busy: Sequence[int] = (),
    control: Sequence[tuple[float, float]] = ((1.0, 1.0), (1.0, 1.01), (1.0, 1.0)),
) -> list[Execution]:
    def run(phase: str, number: int, name: str, wall: float, *, twin: bool = False) -> Execution:
        judgement = "disturbed" if number in busy else "undisturbed"
        return Execution(
            phase="control" if phase == "control" else "compare",
            round=number, place=0, command=name, twin=twin, at="2031-05-04T10:30:00+0000",
            wall=wall, user=wall / 2, system=wall / 4, memory=10 * MB,
            load={"judgement": judgement},
        )  # fmt: skip

    found = [
        run("compare", number, name, wall)
        for name, own in walls.items()
        for number, wall in enumerate(own)
    ]
    first = next(iter(walls))
    for number, pair in enumerate(control):
        found += [run("control", number, first, w, twin=bool(t)) for t, w in enumerate(pair)]
    return found


def answer(walls: Mapping[str, Sequence[float]], **more: object) -> CommandComparison:
    commands = [Command(name=name, line=name) for name in walls]
    found = compare_commands(commands, runs(walls, **more))  # type: ignore[arg-type]
    assert found is not None
    return found


ONE = [1.00, 1.01, 0.99, 1.00, 1.02, 1.00, 0.98, 1.00, 1.01, 1.00]


def times(factor: float) -> list[float]:
    """As if measured independently: not in step with `ONE`."""
    return [factor * value for value in reversed(ONE)]


def test_a_clear_difference_is_claimed() -> None:
    found = answer({"b": times(1.42), "a": ONE})
    assert headline(found) == (
        "“a” is 1.42 times as fast as “b” (1.39 to 1.45), 10 rounds, undisturbed."
    )
    assert (found.fastest.command.name, found.others[0].relation) == ("a", "slower")
    assert not precise(answer({"a": ONE, "b": [3 * v if n % 2 else v for n, v in enumerate(ONE)]}))
    assert not precise(found, within=1.01)
    assert precise(found, within=1.06)


def test_no_difference_is_claimed_within_the_noise() -> None:
    walls = {"a": ONE, "b": times(1.04)}
    assert answer(walls).others[0].relation == "slower"
    noisy = answer(walls, control=((1.0, 1.09), (1.1, 1.0), (1.0, 1.08)))
    assert headline(noisy) == (
        "No difference larger than 7 % between “a” and “b”, 10 rounds, undisturbed."
    )
    assert noisy.noise == pytest.approx(1.09)


def test_equals_are_called_so_only_if_that_is_known() -> None:
    alike = answer({"a": ONE, "b": times(1.0)})
    assert alike.others[0].relation == "no difference"
    assert headline(alike).startswith("No difference larger than 2 % between")
    wild = [0.5, 2.0, 1.0, 0.4, 3.0, 1.1, 0.7, 2.5, 1.0, 0.9]
    assert headline(answer({"a": ONE, "b": wild})).startswith("Not decided: ")


def test_a_busy_machine_gets_a_provisional_answer() -> None:
    found = answer({"a": ONE, "b": times(1.5)}, busy=range(2, 10))
    assert headline(found) == (
        "Provisional: “a” 1.00 s, “b” 1.50 s (1.5 times); the machine was busy in 8 of 10 rounds."
    )
    few = answer({"a": ONE[:2], "b": times(2.0)[:2]})
    assert headline(few).endswith("; a claim takes 3 rounds.")


def test_disturbed_rounds_do_not_count_if_enough_are_quiet() -> None:
    walls = {"a": [*ONE, 9.0], "b": [*times(1.5), 1.0]}
    found = answer(walls, busy=[10])
    assert (found.rounds, found.measured, found.disturbed) == (10, 11, 1)
    assert max(run.wall for run in found.fastest.runs) < 2
    assert "Other programs disturbed 1 further round, which does not count." in notices(found)


def test_several_commands_are_ranked() -> None:
    found = answer({"a": ONE, "b": times(2.0), "c": times(3.0), "d": times(1.0)})
    assert headline(found) == (
        "“a” is 2.00 times as fast as “b” (1.96 to 2.04); 3.00 times as fast as “c” (2.94 to 3.06);"
        " no difference larger than 2 % between “a” and “d”, 10 rounds, undisturbed."
    )


def test_commands_are_named_by_their_parameters() -> None:
    def describe(*lines: str) -> str:
        commands = commands_of(lines, (), {"n": ("1", "2")})
        walls = {one.name: times(float(number + 1)) for number, one in enumerate(commands)}
        found = compare_commands(commands, runs(walls))
        assert found is not None
        return headline(found)

    assert describe("/bin/solve -n {n}").startswith("“n=1” is 2.00 times as fast as “n=2”")
    assert describe("solve {n}", "old {n}").startswith(
        "“solve, n=1” is 2.00 times as fast as “solve"
    )
    assert describe("solve {n}", "solve -x {n}").startswith("“solve 1” is 2.00 times as fast as")


def test_only_complete_rounds_count() -> None:
    found = runs({"a": ONE, "b": ONE[:4]})
    commands = [Command(name=name, line=name) for name in "ab"]
    made = compare_commands(commands, found)
    assert made is not None
    assert made.rounds == 4
    assert compare_commands([*commands, Command(name="c", line="c")], found) is None


# The page.


def header(*names: str) -> Header:
    commands = [{"name": name, "line": name, "parameters": {}} for name in names]
    return Header(
        machine={"host": "node1"}, versions={"python": "3"}, options={"commands": commands},
        started="2031-05-04T10:30:00+0000", seed=1,
    )  # fmt: skip


def test_without_a_complete_round_nothing_is_claimed() -> None:
    made = document_of(header("a", "b"), runs({"a": ONE}))
    assert made.sentences == ["Nothing can be claimed: there is no complete round."]
    assert "no complete round" in page(made)


def test_the_page_has_the_answer_as_title_and_no_script() -> None:
    walls = {"a <b>": ONE, "c": times(80.0)}
    html = page(document_of(header(*walls), runs(walls)))
    assert "<title>“a &lt;b&gt;” is 80.0 times as fast as “c”" in html
    assert html.count("<svg") == 1
    assert "<script" not in html
    assert "a <b>" not in html


# The whole command.


def test_commands_are_compared(gridbench: Run, tmp_path: Path) -> None:
    arguments = (
        "compare", "sleep 0.01", "sleep {t}", "--parameter", "t=0.05,0.1", "--rounds", "3",
        "--accept-load", "--control", "2", "--out", "out",
    )  # fmt: skip
    done = gridbench(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert [one["name"] for one in document["commands"]] == [
        "sleep 0.01",
        "sleep 0.05",
        "sleep 0.1",
    ]
    assert document["commands"][1]["parameters"] == {"t": "0.05"}
    assert document["commands"][2]["wall"]["median"] >= 0.1
    assert (
        document["commands"][2]["ratio"]["median"] > document["commands"][1]["ratio"]["median"] > 1
    )
    assert document["noise"] >= 1
    assert "“sleep 0.01”" in document["verdict"]
    # The order of a round is random, and another one each time.
    stored = FORM.read(tmp_path / "out")[1]
    orders = {
        tuple(run.command for run in sorted(stored, key=lambda r: r.place) if run.round == number)
        for number in range(3)
    }
    assert len(orders) > 1
    again = gridbench(*arguments)
    assert "3 of 3 rounds are there" in again.stderr
    assert len(FORM.read(tmp_path / "out")[1]) == len(stored)
    more = gridbench(*arguments, "--rounds", "4")
    assert more.returncode == 0
    assert len(FORM.read(tmp_path / "out")[1]) == len(stored) + 3
    other = gridbench("compare", "true", "false", "--out", "out", "--accept-load")
    assert other.returncode == 2
    tables = gridbench("report", "out", "--markdown", "-")
    assert "| command | wall time |" in tables.stdout
    assert gridbench("report", "out").returncode == 0
    assert "complete" in gridbench("check", "out").stdout


def test_a_failure_ends_the_comparison(gridbench: Run) -> None:
    arguments = (
        "compare",
        "true",
        "sh -c 'echo broken >&2; exit 4'",
        "--accept-load",
        "--rounds",
        "1",
    )
    done = gridbench(*arguments)
    assert done.returncode == 1
    assert "ended with exit status 4 (warm-up)\n  broken\nhint: --ignore-failure" in done.stderr
    assert done.stdout == "Nothing can be claimed: there is no complete round.\n"
    ignored = gridbench(*arguments, "--ignore-failure", "--control", "0")
    assert ignored.returncode == 0
    assert "failed in 1 of 1 runs" in ignored.stdout
    prepared = gridbench("compare", "true", "true x", "--prepare", "exit 5", "--accept-load")
    assert prepared.returncode == 1
    assert "`exit 5` ended with exit status 5 (--prepare)" in prepared.stderr


def test_what_is_not_there_is_reported(gridbench: Run) -> None:
    done = gridbench("compare", "true", "no-such-program", "--accept-load")
    assert done.returncode == 2
    assert "gridbench: error: there is no program `no-such-program`\nhint: " in done.stderr
    assert "is not a parameter" in gridbench("compare", "a", "--parameter", "n").stderr


def test_prepare_and_cleanup_run_around_each_run(gridbench: Run, tmp_path: Path) -> None:
    done = gridbench(
        "compare", "cat {f}", "--parameter", "f=a,b", "--rounds", "2", "--warm-up", "0",
        "--control", "0", "--accept-load",
        "--prepare", "echo > {f}; echo + >> log", "--cleanup", "rm {f}; echo - >> log",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "log").read_text().split() == ["+", "-"] * 4
    assert not (tmp_path / "a").exists()


def test_ctrl_c_keeps_the_rounds_so_far(tmp_path: Path, environment: dict[str, str]) -> None:
    command = (
        *PROGRAM, "compare", "sleep 0.05", "sleep 0.06", "--rounds", "500", "--control", "0",
        "--accept-load", "--out", "out",
    )  # fmt: skip
    file = tmp_path / "out" / FORM.file
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True,
    ) as process:  # fmt: skip
        until(lambda: file.exists() and file.read_text().count("\n") >= 5)
        process.send_signal(signal.SIGINT)
        shown, text = process.communicate()
    assert process.returncode == 130
    assert "--out out resumes" in text
    assert "sleep 0.05" in shown
    assert (tmp_path / "out" / "report.html").exists()
    write_report([tmp_path / "out"], tmp_path / "again.html")
