"""What a user sees while something takes long."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from gridbench import progress
from gridbench.progress import Steps, Tasks


def terminal(width: int = 120) -> tuple[Console, io.StringIO]:
    screen = io.StringIO()
    return Console(file=screen, force_terminal=True, width=width), screen


def shown(screen: io.StringIO) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", screen.getvalue())


def test_a_terminal_shows_which_step_continues_and_when_the_last_will_end() -> None:
    console, screen = terminal()
    with Steps(console, "case", 3, seconds=600) as steps:
        steps.begin("2 cores, 4 tasks", expected=200)
        steps.end(200)
        steps.skip()
        steps.begin("1 core, 1 task", expected=200, note="at most 5 min")
        text = shown(screen)
    assert "case 1 of 3" in text
    assert re.search(r"2 cores, 4 tasks: 0:0\d, 10 min left, until about", text)
    assert "case 3 of 3" in text
    assert re.search(r"1 core, 1 task: 0:0\d, at most 5 min, 7 min left", text)


def test_a_long_line_is_cut_to_the_width_of_the_terminal() -> None:
    console, screen = terminal(width=60)
    with Steps(console, "case", 3) as steps:
        steps.begin("x" * 200)
        lines = shown(screen).splitlines()
    assert max(map(len, lines)) <= 60
    assert any("…" in line for line in lines)


def test_the_plan_is_corrected_by_what_steps_took() -> None:
    console, _ = terminal()
    steps = Steps(console, "session", seconds=1000)
    steps.begin("a", expected=500)
    steps.end(1000)
    assert steps.left == pytest.approx(500 * 1010 / 510)
    steps.begin("b", seconds=100)  # is known better now
    assert steps.left == pytest.approx(100)


def test_where_lines_pile_up_there_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = io.StringIO()
    with Steps(Console(file=plain), "case", 3) as steps:
        steps.begin("a")
        steps.begin("b")
        monkeypatch.setattr(progress, "_BETWEEN_LINES", 0.0)
        steps.begin("c", note="at most 2 min")
        steps.glance()
    assert plain.getvalue() == "case 1 of 3: a\ncase 3 of 3: c, at most 2 min\n"


def test_tasks_are_counted_and_the_last_count_is_reported_in_any_case() -> None:
    plain = io.StringIO()
    with Tasks(Console(file=plain)) as tasks:
        tasks.begin("pool", 2000)
        tasks.update(5)
        tasks.update(2000, note="0 running", last=True)
    assert re.fullmatch(
        r"pool: 2,000 of 2,000 done, 0 running, [0-9,.]+ tasks/s\n", plain.getvalue()
    )
    console, screen = terminal()
    with Tasks(console) as tasks:
        tasks.begin("pool", 2000)
        tasks.update(1000, doing="starting workers", last=True)
        assert "1000/2000 starting workers" in shown(screen)
