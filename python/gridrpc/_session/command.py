"""`gridrpc session`: start, list, show and stop."""

from __future__ import annotations

import argparse
import json
import os
import pickle
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from gridrpc._launch import python_command
from gridrpc._session import places
from gridrpc._session.places import Record, State
from gridrpc.errors import GridError, SessionError

#: How long a session has for its end, s: agents and batch jobs are ended meanwhile.
END = 60.0
SETTINGS = "settings.json"
DEFAULT_LIMIT = "24h"
_UNITS = {"s": 1, "min": 60, "m": 60, "h": 3600, "d": 86400}


def main(words: list[str]) -> int:
    """Do what a command line says, and return its exit status."""
    try:
        try:
            return _main(words)
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        # The reader of the output has gone. Python would try to write the rest at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE


def _main(words: list[str]) -> int:
    parser = _parser()
    given = vars(parser.parse_args(words))
    run = given.pop("run")
    try:
        run(**given)
    except (GridError, ValueError) as error:
        print(f"gridrpc: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="gridrpc session",
        description="Keep a grid and its results on this machine under a name, for programs that "
        "come and go. They use it by gridrpc.attach(NAME).",
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    start = commands.add_parser(
        "start",
        help="start a session, or go on with one that has ended",
        description="Start a session, or go on with one that has ended: with its maps, and by "
        "default with the grid that it had.",
    )
    start.set_defaults(run=_start)
    start.add_argument("name", metavar="NAME")
    start.add_argument("--config", metavar="FILE", help="the file that describes the grid")
    start.add_argument(
        "--server", metavar="SERVER", action="append", dest="servers",
        help="a place with workers: a URL, or a name in the file; may be given several times",
    )  # fmt: skip
    start.add_argument("--workers", metavar="N", type=int, help="workers on this machine")
    start.add_argument(
        "--limit", metavar="TIME", default=DEFAULT_LIMIT, type=_seconds,
        help="when to end it: 90min, 8h, 2d; or 0: never "
        f"(default: {DEFAULT_LIMIT})",
    )  # fmt: skip
    _add_quiet(start)

    listed = commands.add_parser("list", help="list the sessions")
    listed.set_defaults(run=_list)
    _add_json(listed)

    show = commands.add_parser("show", help="show a session, its workers and its maps")
    show.set_defaults(run=_show)
    show.add_argument("name", metavar="NAME")
    _add_json(show)

    stop = commands.add_parser(
        "stop",
        help="end a session, its workers and its batch jobs",
        description="End a session, its workers and its batch jobs. Its results stay.",
    )
    stop.set_defaults(run=_stop)
    stop.add_argument("name", metavar="NAME")
    stop.add_argument("--forget", action="store_true", help="remove its items and results as well")
    _add_quiet(stop)
    return parser


def _add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--json", action="store_true", dest="as_json", help="print all values as JSON"
    )


def _add_quiet(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-q", "--quiet", action="store_true", help="print nothing but errors")


def _seconds(text: str) -> float:
    """A time such as 90min, in seconds. Only 0 needs no unit."""
    found = re.fullmatch(rf"(\d+(?:\.\d+)?)({'|'.join(_UNITS)})?", text)
    if found is None:
        raise argparse.ArgumentTypeError(f"`{text}` is not a time: give 90min, 8h, 2d, or 0: never")
    number, unit = found.groups()
    if unit is None and float(number):
        raise argparse.ArgumentTypeError(
            f"`{text}` has no unit: give {text}s, {text}min or {text}h"
        )
    return float(number) * _UNITS[unit or "s"]


# ---- start


def _start(
    name: str,
    *,
    config: str | None,
    servers: list[str] | None,
    workers: int | None,
    limit: float,
    quiet: bool,
) -> None:
    folder = places.folder_of(name)
    _refuse_running(name)
    settings: dict[str, Any] = {
        key: value
        for key, value in (
            ("config", None if config is None else os.path.abspath(config)),
            ("servers", servers),
            ("workers", workers),
        )
        if value is not None
    }
    directory = os.getcwd()
    earlier = folder / SETTINGS
    if not settings and earlier.is_file():
        known = json.loads(earlier.read_text(encoding="utf-8"))
        settings, directory = known["settings"], known["directory"]
    places.make(name)
    told = _begun(name, limit or None, settings, directory, folder / places.LOG)
    if told is not None:
        raise SessionError(f"session `{name}` could not be started: {told}", name)
    earlier.write_text(json.dumps({"settings": settings, "directory": directory}), encoding="utf-8")
    if quiet:
        return
    record = places.record_of(name)
    print(f"session {name} runs as process {record.pid}, {_until(record)}")
    print(f'programs attach by gridrpc.attach("{name}"); its log is {folder / places.LOG}')
    keys = places.keys_in(folder)
    if keys:
        print(f"it goes on with {', '.join(keys)}")


def _refuse_running(name: str) -> None:
    try:
        record = places.record_of(name)
    except (LookupError, SessionError) as error:
        if getattr(error, "reason", ""):
            raise
        return
    if record.state() == "running":
        raise SessionError(
            f"session `{name}` runs already, as process {record.pid}: "
            f"`gridrpc session show {name}`",
            name,
        )
    if record.state() == "elsewhere":
        raise SessionError(
            f"session `{name}` runs on {record.host}: stop it there, or choose another name", name
        )


def _begun(
    name: str, limit: float | None, settings: dict[str, Any], directory: str, log: Path
) -> str | None:
    """Start the process of a session, away from this terminal. Returns why it could not begin."""
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as pipe:
        opened = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            process = subprocess.Popen(
                python_command("gridrpc._session.keeper"),
                stdin=subprocess.PIPE, stdout=opened, stderr=opened, cwd=directory,
                pass_fds=[writing], start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            os.close(writing)
            return str(error)
        finally:
            os.close(opened)
        os.close(writing)
        assert process.stdin is not None
        given = {"name": name, "limit": limit, "settings": settings, "pipe": writing}
        process.stdin.write(pickle.dumps(given))
        process.stdin.close()
        told = pipe.read()
    # It is to outlive this process: nobody waits for it.
    process.returncode = 0
    if not told:
        return f"its process ended: see {log}"
    answer: str | None = pickle.loads(told)
    return answer


# ---- list, show


def _list(as_json: bool) -> None:
    names = places.known()
    if as_json:
        _print_json(list(map(_listed, names)))
        return
    if not names:
        print("there are no sessions; `gridrpc session start NAME` starts one")
        return
    rows = [("NAME", "STATE", "PROCESS", "UNTIL", "MAPS")]
    for name in names:
        try:
            record = places.record_of(name)
        except SessionError as error:
            rows.append((name, f"{error}", "", "", ""))
            continue
        state = record.state()
        here = state == "running"
        rows.append((
            name,
            f"on {record.host}" if state == "elsewhere" else state,
            str(record.pid) if here else "-",
            _when(record.until) if here and record.until else "-",
            ", ".join(places.keys_in(places.folder_of(name))) or "-",
        ))  # fmt: skip
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(map(str.ljust, row, widths)).rstrip())


def _listed(name: str) -> dict[str, Any]:
    """A session for programs; with `error` instead, if nothing is known of it."""
    try:
        return _known(places.record_of(name))
    except SessionError as error:
        return {"name": name, "error": str(error)}


def _known(record: Record) -> dict[str, Any]:
    """What is known without asking the session's process. Times are seconds since 1970."""
    folder = places.folder_of(record.name)
    state = record.state()
    return {
        "name": record.name,
        "state": state,
        "host": record.host,
        "process": record.pid,
        "since": record.since,
        "until": record.until,
        "ended": None if state in ("running", "elsewhere") else record.fate(),
        "log": str(folder / places.LOG),
        "maps": places.keys_in(folder),
    }


def _shown(record: Record) -> dict[str, Any]:
    """The same, and what the process tells of its workers and of each map, if it runs here."""
    known = _known(record)
    if known["state"] != "running":
        return known
    told = _status(record.name)
    progress = told.pop("maps")
    for of in progress.values():
        if of["halted"] is not None:
            of["halted"] = str(pickle.loads(of["halted"]))
    return known | told | {"progress": progress}


def _status(name: str) -> dict[str, Any]:
    from gridrpc._session.attached import AttachedGrid

    with AttachedGrid(name) as grid:
        told: dict[str, Any] = grid._asked("status")
    return told


def _print_json(value: Any) -> None:
    print(json.dumps(value, indent=2))


def _show(name: str, as_json: bool) -> None:
    record = places.record_of(name)
    if as_json:
        _print_json(_shown(record))
        return
    folder = places.folder_of(name)
    state: State = record.state()
    if state != "running":
        if state == "elsewhere":
            print(f"session {name} runs on {record.host}: ask there")
        else:
            print(
                f"session {name} {'has ended' if state == 'ended' else 'is stale'}: {record.fate()}"
            )
            print(f"kept of it: {', '.join(places.keys_in(folder)) or 'nothing'}")
        print(f"log: {folder / places.LOG}")
        return
    told = _status(name)
    print(
        f"session {name} runs as process {record.pid} since {_when(record.since)}, {_until(record)}"
    )
    print(f"log: {folder / places.LOG}")
    print(f"attached: {told['attached']}")
    print(f"workers: {told['ready']} of {told['workers']} ready")
    for line in told["absent"]:
        print(f"  {line}")
    for key, of in told["maps"].items():
        items = f"{of['items']:,}" + ("" if of["complete"] else " or more")
        line = f"map {key}: {of['function']}, {of['results']:,} of {items} results"
        for what in ("failed", "under_way"):
            if of[what]:
                line += f", {of[what]:,} {what.replace('_', ' ')}"
        print(line)
        if of["halted"] is not None:
            print(f"  it has stopped: {pickle.loads(of['halted'])}")


def _until(record: Record) -> str:
    return "without a limit" if record.until is None else f"until {_when(record.until)}"


def _when(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))


# ---- stop


def _stop(name: str, forget: bool, quiet: bool) -> None:
    say = _nothing if quiet else print
    record = places.record_of(name)
    if record.state() == "elsewhere":
        raise SessionError(f"session `{name}` runs on {record.host}: stop it there", name)
    if record.state() == "running":
        _end(record)
        say(f"session {name} has ended")
    else:
        say(f"session {name} had ended before: {record.fate()}")
    if forget:
        places.forget(name)
        say("its results are removed")
    elif keys := places.keys_in(places.folder_of(name)):
        say(f"its results are kept ({', '.join(keys)}); `--forget` removes them")


def _nothing(line: str) -> None:
    del line


def _end(record: Record) -> None:
    from gridrpc._session.attached import AttachedGrid

    try:
        with AttachedGrid(record.name) as grid:
            grid._asked("stop")
    except SessionError:
        # It ends already, or is another version's, or does not answer.
        _signal(record, signal.SIGTERM)
    if not _is_gone(record, END):
        _signal(record, signal.SIGKILL)
        _is_gone(record, END)


def _signal(record: Record, number: signal.Signals) -> None:
    if places.started_at(record.pid) == record.started:
        os.kill(record.pid, number)


def _is_gone(record: Record, seconds: float) -> bool:
    until = time.monotonic() + seconds
    while places.started_at(record.pid) == record.started:
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True
