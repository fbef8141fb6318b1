"""Sessions: programs end, are killed and come back, and nothing is lost or run twice."""

from __future__ import annotations

import collections
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

import gridrpc
from gridrpc import (
    JournalError,
    NoSession,
    OutcomeUnknown,
    SessionEnded,
    SessionRefused,
    StartError,
)
from grids import PROGRAM
from noting import not_today, noted, slowly, waits
from processes import LONG, descendants, run_script, running, start_script, until
from sessions import at, command, ran


@pytest.fixture(scope="module", autouse=True)
def state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of all sessions, which are ended behind the tests."""
    # Deeper than a socket's path may be long.
    home = tmp_path_factory.mktemp("state") / ("deep" * 20)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(home))
        yield home / "gridrpc/sessions"
    for record in home.glob("gridrpc/sessions/*/session.json"):
        with suppress(psutil.NoSuchProcess, KeyError):
            process = psutil.Process(json.loads(record.read_text())["pid"])
            if "gridrpc._session" in " ".join(process.cmdline()):
                process.kill()


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A session with two workers, `night`, which no test may break."""
    folder = tmp_path_factory.mktemp("night")
    command("start", "night", "--workers", "2", cwd=folder)
    yield folder
    command("stop", "night", "--forget", cwd=folder)


@pytest.fixture
def night(session: Path) -> Iterator[gridrpc.AttachedGrid]:
    """The same with no maps."""
    assert session.is_dir()
    with gridrpc.attach("night") as grid:
        yield grid
        for key in grid.maps:
            grid.forget(key)


def listed(name: str, folder: Path) -> list[str]:
    """Its name and its state, as `gridrpc session list` has them."""
    rows = [line.split() for line in command("list", cwd=folder).splitlines()]
    (row,) = [row for row in rows if row[0] == name]
    return row[:2]


def pid_of(state: Path, name: str) -> int:
    pid: int = json.loads((state / name / "session.json").read_text())["pid"]
    return pid


@contextmanager
def started(folder: Path, name: str, *words: str) -> Iterator[gridrpc.AttachedGrid]:
    """A session of the test's own."""
    command("start", name, "--workers", "2", *words, cwd=folder)
    with gridrpc.attach(name) as grid:
        yield grid


PROGRAM_WITH_CLASSES = """
    import os, time
    import gridrpc

    class Price:
        def __init__(self, item):
            self.item = item

    class Wrong(Exception):
        pass

    def work(folder, price):
        assert isinstance(price, Price)
        with open(f"{folder}/ran", "a") as file:
            file.write(f"{price.item}\\n")
        time.sleep(0.01)
        if price.item == 150:
            raise Wrong(price.item)
        return Price(10 * price.item)

    with gridrpc.attach("night") as grid:
        items = [Price(n) for n in range(200)]
        results = grid.map("work", work, [os.getcwd()] * 200, items, return_exceptions=True)
        for result in results:
            if isinstance(result, Wrong):
                print("wrong", *result.args, flush=True)
            else:
                assert type(result) is Price
                print(result.item, flush=True)
"""


@pytest.mark.usefixtures("night")
def test_a_program_that_is_killed_comes_back_to_its_results(tmp_path: Path) -> None:
    program = start_script(tmp_path, PROGRAM_WITH_CLASSES)
    assert program.stdout is not None
    for _ in range(50):
        program.stdout.readline()
    program.kill()
    program.communicate(timeout=LONG)
    again = run_script(tmp_path, PROGRAM_WITH_CLASSES)
    expected = [str(10 * n) if n != 150 else "wrong 150" for n in range(200)]
    assert again.stdout.splitlines() == expected, again.stderr
    assert "items have their results" in again.stderr
    # Also those that ran when it was killed, and while nobody was there.
    assert sorted(ran(tmp_path)) == list(range(200))


def test_work_continues_when_the_program_has_ended(
    night: gridrpc.AttachedGrid, tmp_path: Path
) -> None:
    source = """
        import gridrpc, noting, os
        folders = [os.getcwd()] * 100
        print(gridrpc.attach("night").submit("work", noting.slowly, folders, range(100)))
    """
    assert run_script(tmp_path, source).stdout == "100\n"
    assert until(lambda: night.maps["work"]["results"] == 100)
    expected = [10 * n for n in range(100)]
    assert list(night.results("work")) == expected
    assert sorted(night.results("work", ordered=False)) == expected
    # More items may follow, and fewer are refused.
    assert list(night.map("work", slowly, *at(tmp_path, range(110))))[100:] == [
        10 * n for n in range(100, 110)
    ]
    with pytest.raises(JournalError, match="has 110 items, but this program gives 7"):
        night.submit("work", slowly, *at(tmp_path, range(7)))
    assert sorted(ran(tmp_path)) == list(range(110))
    shown = json.loads(command("show", "night", "--json", cwd=tmp_path))
    assert (shown["state"], shown["workers"]) == ("running", 2)
    assert shown["progress"]["work"]["results"] == shown["progress"]["work"]["items"] == 110
    named = json.loads(command("list", "--json", cwd=tmp_path))
    assert ("night", ["work"]) in [(one["name"], one["maps"]) for one in named]
    reported = command("show", "night", cwd=tmp_path)
    assert "map work: slowly, 110 of 110 results" in reported
    assert "workers: 2 of 2 ready" in reported
    assert "attached: 1" in reported


@pytest.mark.parametrize("ordered", [True, False])
def test_two_programs_share_a_map(
    night: gridrpc.AttachedGrid, tmp_path: Path, ordered: bool
) -> None:
    with gridrpc.attach("night") as other:
        first = night.map("work", slowly, *at(tmp_path, range(60)), ordered=ordered)
        second = other.map("work", slowly, *at(tmp_path, range(60)), ordered=ordered)
        pairs = list(zip(first, second, strict=True))
        assert sorted(a for a, _ in pairs) == sorted(b for _, b in pairs)
        assert sorted(a for a, _ in pairs) == [10 * n for n in range(60)]
        assert sorted(ran(tmp_path)) == list(range(60))


def test_ctrl_c_detaches_and_the_work_continues(
    night: gridrpc.AttachedGrid, tmp_path: Path
) -> None:
    program = start_script(
        tmp_path,
        """
        import gridrpc, noting, os
        folders = [os.getcwd()] * 20
        grid = gridrpc.attach("night")
        for value in grid.map("work", noting.waits, folders, range(20), chunk=1):
            print(value, flush=True)
        """,
    )
    assert program.stdout is not None
    for _ in range(10):
        program.stdout.readline()
    os.killpg(program.pid, signal.SIGINT)
    _, said = program.communicate(timeout=LONG)
    assert "detached from session night, whose work continues" in said
    assert said.count("detached") == 1
    (tmp_path / "gate").touch()
    assert list(night.results("work")) == list(range(20))
    assert sorted(ran(tmp_path)) == list(range(20))


def test_what_is_stopped_leaves_nothing_but_results(tmp_path: Path, state: Path) -> None:
    with started(tmp_path, "day") as grid:
        assert list(grid.map("work", noted, *at(tmp_path, range(30)))) == [
            10 * n for n in range(30)
        ]
        grid.submit("more", waits, *at(tmp_path, range(10, 30)))
        assert until(lambda: grid.maps["more"]["under_way"] > 0)
        pids = {pid_of(state, "day"), *descendants(pid_of(state, "day"))}
        assert len(pids) > 2
        assert "has ended" in command("stop", "day", cwd=tmp_path)
        assert not running(pids)
        assert not (state / "day/socket").exists()
        with pytest.raises(SessionEnded, match="it was stopped"):
            list(grid.results("more"))
    assert listed("day", tmp_path) == ["day", "ended"]
    with pytest.raises(SessionEnded, match="gridrpc session start day"):
        gridrpc.attach("day")
    with gridrpc.attach("day", ended=True) as left:
        assert list(left.results("work")) == [10 * n for n in range(30)]
        with pytest.raises(SessionEnded, match="takes no maps"):
            left.submit("work", noted, *at(tmp_path, range(30)))
        with pytest.raises(LookupError, match="there are: `more`, `work`"):
            list(left.results("other"))
    assert "are removed" in command("stop", "day", "--forget", cwd=tmp_path)
    assert not (state / "day").exists()
    with pytest.raises(NoSession, match="no session `day`"):
        gridrpc.attach("day")


def test_a_session_ends_at_its_limit(tmp_path: Path, state: Path) -> None:
    with started(tmp_path, "hour", "--limit", "3s") as grid:
        pids = {pid_of(state, "hour"), *descendants(pid_of(state, "hour"))}
        with pytest.raises(SessionEnded, match="its limit was reached"):
            list(grid.map("work", waits, *at(tmp_path, range(30)), chunk=1))
        assert until(lambda: not running(pids))
    with gridrpc.attach("hour", ended=True) as left:
        assert list(left.results("work")) == list(range(10))


@pytest.mark.parametrize("idempotent", [True, False])
def test_a_session_whose_process_is_killed_continues_from_its_files(
    tmp_path: Path, state: Path, idempotent: bool
) -> None:
    name = f"killed-{idempotent}"
    with started(tmp_path, name) as grid:
        grid.submit("work", waits, *at(tmp_path, range(30)), idempotent=idempotent, chunk=1)
        assert until(lambda: len(ran(tmp_path)) == 12)
        assert until(lambda: grid.maps["work"]["results"] == 10)
        pids = descendants(pid_of(state, name))
        os.kill(pid_of(state, name), signal.SIGKILL)
        assert until(lambda: not running(pids))
        with pytest.raises(SessionEnded, match=r"is stale: its process \d+ is gone"):
            list(grid.results("work"))
    assert listed(name, tmp_path) == [name, "stale"]
    (tmp_path / "gate").touch()
    # With the grid that it had, in the folder that it had, wherever it is started again.
    assert "continues with work" in command("start", name, cwd=Path("/"))
    with gridrpc.attach(name) as grid:
        results = list(grid.results("work", return_exceptions=True))
        counts = collections.Counter(ran(tmp_path))
        unknown = [n for n, one in enumerate(results) if isinstance(one, OutcomeUnknown)]
        if idempotent:
            assert results == list(range(30))
            assert sum(counts.values()) == 32
        else:
            # Those that ran, and those that had been sent to be run next.
            assert {n for n, times in counts.items() if n >= 10} & set(unknown)
            assert [one for n, one in enumerate(results) if n not in unknown] == [
                n for n in range(30) if n not in unknown
            ]
            assert set(counts.values()) == {1}
            again = grid.map("work", waits, *at(tmp_path, range(30)), idempotent=True, chunk=1)
            assert list(again) == list(range(30))
        assert grid.workers == 2
    command("stop", name, "--forget", cwd=tmp_path)


def test_errors_are_raised_in_their_places_and_run_again_when_they_were_reported(
    night: gridrpc.AttachedGrid, tmp_path: Path
) -> None:
    results = night.map("work", not_today, *at(tmp_path, range(10)))
    assert [next(results) for _ in range(5)] == [0, 1, 2, 3, 4]
    with pytest.raises(ValueError, match="not today") as caught:
        next(results)
    assert "in not_today" in str(caught.value.__cause__)
    assert "item 5" in caught.value.__notes__[0]
    assert list(night.map("work", not_today, *at(tmp_path, range(10)))) == list(range(10))
    counts = collections.Counter(ran(tmp_path))
    assert counts == {n: 2 if n == 5 else 1 for n in range(10)}


def test_a_cancelled_map_keeps_its_results_and_continues_when_it_is_sent_again(
    night: gridrpc.AttachedGrid, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"

    def work(n: int) -> int:
        with (tmp_path / f"ran-{n}").open("a") as mark:
            mark.write("x")
        while n >= 2 and not gate.exists():
            time.sleep(0.005)
        return n

    night.submit("held", work, range(8), chunk=1, idempotent=True)
    assert until(lambda: night.maps["held"]["results"] == 2)
    assert until(lambda: night.maps["held"]["under_way"] > 0)
    assert command("cancel", "night", "held", cwd=tmp_path) == "held: cancelled\n"
    assert until(lambda: night.maps["held"]["under_way"] == 0)
    results = night.results("held")
    assert [next(results), next(results)] == [0, 1]
    with pytest.raises(gridrpc.CallCancelled, match="map `held` of the session was cancelled"):
        next(results)
    # Its workers are free for others.
    assert list(night.map("other", abs, [-1])) == [1]
    gate.touch()
    assert list(night.map("held", work, range(8), chunk=1, idempotent=True)) == list(range(8))
    assert (tmp_path / "ran-0").read_text() == "x"
    assert night.cancel("held") is False
    assert "it had ended" in command("cancel", "night", "--all", cwd=tmp_path)
    with pytest.raises(LookupError, match="has no map `absent`"):
        night.cancel("absent")
    reported = command("cancel", "night", cwd=tmp_path, status=1)
    assert "give keys of maps and calls, or --all" in reported


def test_what_has_changed_is_noticed(night: gridrpc.AttachedGrid) -> None:
    made: list[Callable[[int], int]] = [lambda x: x + 1, lambda x: x + 2]
    assert list(night.map("work", made[0], range(5))) == [1, 2, 3, 4, 5]
    with pytest.raises(JournalError, match="which has changed since"):
        night.map("work", made[1], range(5))
    with pytest.raises(JournalError, match="another item 2"):
        night.map("work", made[0], [0, 1, 7, 3, 4])
    assert list(night.map("work", made[1], range(6), if_changed="keep")) == [1, 2, 3, 4, 5, 7]
    again = night.map("work", made[1], range(5), if_changed="restart")
    assert list(again) == [2, 3, 4, 5, 6]
    assert list(night.maps) == ["work"]
    night.forget("work")
    assert dict(night.maps) == {}
    with pytest.raises(LookupError, match="has no map `work`"):
        list(night.results("work"))


@pytest.mark.usefixtures("night")
def test_a_module_that_has_changed_is_loaded_again(tmp_path: Path) -> None:
    source = """
        import gridrpc, mine
        with gridrpc.attach("night") as grid:
            print(*grid.map("work", mine.work, range(3), if_changed="restart"))
    """
    for shift in (100, 2000):
        (tmp_path / "mine.py").write_text(f"def work(x):\n    return x + {shift}\n")
        printed = run_script(tmp_path, source).stdout
        assert printed == f"{shift} {shift + 1} {shift + 2}\n"


def test_large_items_and_results_go_through(night: gridrpc.AttachedGrid) -> None:
    items = [bytes([n]) * (1 << 20) for n in range(12)]
    assert list(night.map("work", bytes.upper, items)) == [item.upper() for item in items]


def test_an_item_that_raises_an_error_leaves_the_map_open(
    night: gridrpc.AttachedGrid, tmp_path: Path
) -> None:
    folders, items = at(tmp_path, range(5))
    with pytest.raises(ZeroDivisionError):
        night.submit("work", noted, folders, (n if n < 3 else 1 // 0 for n in items))
    assert not night.maps["work"]["complete"]
    assert list(night.map("work", noted, *at(tmp_path, range(5)))) == [0, 10, 20, 30, 40]
    assert night.maps["work"]["complete"]


@pytest.mark.usefixtures("session")
def test_a_session_that_is_not_there_is_reported_with_those_that_are(tmp_path: Path) -> None:
    with pytest.raises(NoSession, match=r"no session `dawn`; there are .*`night`"):
        gridrpc.attach("dawn")
    with pytest.raises(ValueError, match="not a valid name of a session"):
        gridrpc.attach("../night")
    said = command("start", "night", cwd=tmp_path, status=1)
    assert "`night` runs already" in said
    assert "no session `dawn`" in command("stop", "dawn", cwd=tmp_path, status=1)


@pytest.mark.usefixtures("session")
def test_a_session_of_another_version_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gridrpc, "__version__", "9.9")
    with pytest.raises(SessionRefused, match=r"this program has gridrpc 9\.9") as caught:
        gridrpc.attach("night")
    assert caught.value.reason == "version"


@pytest.mark.usefixtures("session")
def test_a_session_elsewhere_or_of_another_user_is_refused(state: Path) -> None:
    record = state / "night/session.json"
    reported = json.loads(record.read_text())
    record.write_text(json.dumps({**reported, "host": "login7"}))
    with pytest.raises(SessionRefused, match="runs on login7") as caught:
        gridrpc.attach("night")
    assert caught.value.reason == "host"
    record.write_text(json.dumps(reported))
    if os.geteuid() == 0:
        os.chown(state / "night", 65534, 65534)
        with pytest.raises(SessionRefused, match="belongs to nobody") as caught:
            gridrpc.attach("night")
        assert caught.value.reason == "user"
        os.chown(state / "night", 0, 0)


@pytest.mark.usefixtures("session")
def test_only_its_user_can_look_into_a_session(state: Path) -> None:
    assert (state / "night").stat().st_mode & 0o777 == 0o700


@pytest.mark.usefixtures("session")
def test_another_process_with_its_number_is_not_the_session(state: Path) -> None:
    """As after a reboot."""
    record = state / "night/session.json"
    reported: dict[str, Any] = json.loads(record.read_text())
    record.write_text(json.dumps({**reported, "started": reported["started"] + 1}))
    with pytest.raises(SessionEnded, match="is stale"):
        gridrpc.attach("night")
    record.write_text(json.dumps({**reported, "boot": "another"}))
    with pytest.raises(SessionEnded, match="the machine has been started again"):
        gridrpc.attach("night")
    record.write_text(json.dumps(reported))


def test_a_grid_that_cannot_be_is_reported(tmp_path: Path) -> None:
    (tmp_path / "grid.toml").write_text("[grid]\nworkrs = 3\n")
    said = command("start", "bad", "--config", "grid.toml", cwd=tmp_path, status=1)
    assert "unknown key `workrs`" in said
    assert "bad" not in command("list", cwd=tmp_path)


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("8", "`8` has no unit: give 8s, 8min or 8h"),
        ("0.5", "`0.5` has no unit: give 0.5s, 0.5min or 0.5h"),
        ("soon", "`soon` is not a time: give 90min, 8h, 2d, or 0: never"),
        ("8hours", "`8hours` is not a time"),
    ],
)
def test_a_limit_without_a_unit_is_refused(tmp_path: Path, text: str, reported: str) -> None:
    assert reported in command("start", "unclear", "--limit", text, cwd=tmp_path, status=2)
    assert "unclear" not in command("list", cwd=tmp_path)


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90), ("1.5min", 90), ("90m", 5400), ("8h", 28800), ("2d", 172800)]
)
def test_limits_have_units(tmp_path: Path, state: Path, text: str, seconds: float) -> None:
    command("start", "limited", "--workers", "1", "--limit", text, cwd=tmp_path)
    reported = json.loads((state / "limited/session.json").read_text())
    command("stop", "limited", "--forget", cwd=tmp_path)
    assert reported["until"] - reported["since"] == pytest.approx(seconds)


def test_a_session_may_have_no_limit(tmp_path: Path, state: Path) -> None:
    assert "without a limit" in command(
        "start", "limited", "--workers", "1", "--limit", "0", cwd=tmp_path
    )
    assert json.loads((state / "limited/session.json").read_text())["until"] is None
    command("stop", "limited", "--forget", cwd=tmp_path)


def local(name: str, python: str) -> str:
    """A server on this machine."""
    return f'[server.{name}]\nlauncher = "local"\nworkers = 1\npython = "{python}"\n'


def test_a_grid_that_will_have_no_workers_is_reported_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "grid.toml").write_text(local("bad", "python-of-the-test"))
    said = command("start", "hopeless", "--config", "grid.toml", cwd=tmp_path, status=1)
    assert "session `hopeless` could not be started: no worker could be started" in said
    assert "could not run `python-of-the-test`" in said
    assert "hopeless" not in command("list", cwd=tmp_path)


def test_a_grid_that_lacks_one_of_its_servers_begins(tmp_path: Path) -> None:
    both = local("bad", "python-of-the-test") + local("good", sys.executable)
    (tmp_path / "grid.toml").write_text(both)
    command("start", "half", "--config", "grid.toml", cwd=tmp_path)
    with gridrpc.attach("half") as grid:
        assert list(grid.map("work", abs, range(5))) == list(range(5))
    command("stop", "half", "--forget", cwd=tmp_path)


def test_a_grid_without_workers_stops_the_map_until_it_is_sent_again(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\nuntil [ -e {tmp_path}/gate ]; do sleep 0.05; done\nexit 3\n")
    python.chmod(0o755)
    (tmp_path / "grid.toml").write_text(local("bad", f"{python}"))
    command("start", "bad", "--config", "grid.toml", cwd=tmp_path)
    with gridrpc.attach("bad") as grid:
        (host,) = grid.hosts()
        assert (host.server, host.host, host.state) == ("bad", "localhost", "starting")
        with pytest.raises(TimeoutError) as caught:
            list(grid.map("work", abs, range(5), timeout=0.1))
        first, *absent = str(caught.value).splitlines()
        assert "the next result is not there in time; 0 of 1 workers have answered" in first
        assert len(absent) == 1
        assert "localhost" in absent[0]
        (tmp_path / "gate").touch()
        for _ in range(2):
            with pytest.raises(StartError, match="no worker could be started"):
                list(grid.map("work", abs, range(5)))
        assert isinstance(grid.maps["work"]["stopped"], StartError)
        assert grid.maps["work"]["failed"] == 0
    assert "it has stopped: no worker" in command("show", "bad", cwd=tmp_path)
    # The same session on a grid that works.
    command("stop", "bad", cwd=tmp_path)
    command("start", "bad", "--workers", "1", cwd=tmp_path)
    with gridrpc.attach("bad") as grid:
        assert list(grid.map("work", abs, range(5))) == list(range(5))
    command("stop", "bad", "--forget", cwd=tmp_path)


def test_the_program_tells_of_sessions(tmp_path: Path) -> None:
    assert "start a session" in command("--help", cwd=tmp_path)
    help_text = subprocess.run([PROGRAM, "--help"], capture_output=True, text=True, check=True)
    assert "session" in help_text.stdout
