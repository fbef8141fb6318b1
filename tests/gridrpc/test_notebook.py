"""What notebooks show of a grid, of calls, and of a map."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import gridrpc
from processes import LONG, until, write_script
from remote import add


def text_of(html: str) -> str:
    """Its text; raises an error if tags are not closed or text is not escaped."""
    return " ".join(ElementTree.fromstring(html.replace("<br>", "<br/>")).itertext())


def shown(one: object) -> str:
    html = one._repr_html_()  # type: ignore[attr-defined]
    assert isinstance(html, str)
    return text_of(html)


def test_a_grid_is_shown_with_its_functions_and_hosts() -> None:
    with gridrpc.Grid(workers=2) as grid:
        assert re.search(r"gridrpc\.Grid: \d of 2 python workers ready", shown(grid))
        for x in range(30):
            grid.submit(add, x, 1).result(LONG)
        grid.submit(add, 1, None).exception(LONG)
        odd = lambda: 1  # noqa: E731
        odd.__qualname__ = "<b>&odd"
        grid.submit(odd).result(LONG)
        text = shown(grid)
        assert "32 calls have ended, 1 of them with an error" in text
        assert "remote/add 31 1 " in re.sub(r"\s+", " ", text)
        assert "<b>&odd" in text
    assert "closed" in shown(grid)


def test_many_functions_are_not_all_shown() -> None:
    with gridrpc.Grid(workers=1) as grid:
        for number in range(13):
            named = lambda: 1  # noqa: E731
            named.__qualname__ = f"number_{number}"
            grid.submit(named).result(LONG)
        text = shown(grid)
    assert len(re.findall(r"number_\d+", text)) == 10
    assert "and 3 more" in text


def test_calls_are_shown_as_they_are(tmp_path: Path) -> None:
    go = tmp_path / "go"

    def wait() -> int:
        while not go.exists():
            os.sched_yield()
        return 1

    with gridrpc.Grid(workers=1) as grid:
        running, waiting = grid.submit(wait), grid.submit(add, 1, 1)
        assert until(lambda: "running" in shown(running))
        assert "gridrpc.Call of remote/add: queued" in shown(waiting)
        assert "worker" not in shown(waiting)
        go.touch()
        assert (running.result(LONG), waiting.result(LONG)) == (1, 2)
        text = shown(waiting)
        assert "remote/add: done" in text
        assert re.search(r"worker 0 on \S+; its function ran [\d.]+ (ns|us|ms)", text)
        failed = grid.submit(add, 1, None)
        failed.exception(LONG)
        assert "failed: TypeError" in shown(failed)
        lost = grid.submit(os._exit, 1)
        assert isinstance(lost.exception(LONG), gridrpc.WorkerLost)
        assert "its function ran" not in shown(lost)


def test_a_map_shows_how_far_it_has_come() -> None:
    with gridrpc.Grid(workers=1) as grid:
        results = grid.map(add, range(10), range(10), chunk=1)
        assert "0 of 10 results given, 0 calls under way" in shown(results)
        assert [next(results) for _ in range(4)] == [0, 2, 4, 6]
        assert "4 of 10 results given" in shown(results)
        assert 'value="4" max="10"' in results._repr_html_()
        assert len(list(results)) == 6
        assert "10 of 10 results given, 0 calls under way" in shown(results)
        endless = grid.map(add, iter(range(3)), iter(range(3)))
        assert list(endless) == [0, 2, 4]
        assert "3 results given" in shown(endless)


def test_a_child_of_fork_shows_nothing(tmp_path: Path) -> None:
    script = write_script(
        tmp_path,
        """
        import os, gridrpc

        with gridrpc.Grid(workers=1) as grid:
            grid.wait_until_ready()
            child = os.fork()
            if not child:
                os._exit(0 if grid._repr_html_() is None else 1)
            assert os.waitpid(child, 0)[1] == 0
        """,
    )
    ran = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, timeout=LONG, check=False
    )
    assert ran.returncode == 0, ran.stderr
