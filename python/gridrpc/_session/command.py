"""`gridrpc session`: start, list, show, cancel and stop."""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from gridrpc._launch import python_command
from gridrpc._session import registry
from gridrpc._session.registry import SessionRecord
from gridrpc.errors import GridError, SessionError

#: Maximum time for a session to end, s: it ends its agents and batch jobs.
END = 60.0
SETTINGS = "settings.json"
DEFAULT_LIMIT = "24h"
_UNITS = {"s": 1, "min": 60, "m": 60, "h": 3600, "d": 86400}


def main(words: list[str]) -> int:
    """Run a command line, and return its exit status."""
    try:
        try:
            given = vars(_parser().parse_args(words))
            given.pop("run")(**given)
            return 0
        except (GridError, ValueError) as error:
            print(f"gridrpc: {error}", file=sys.stderr)
            return 1
        except KeyboardInterrupt:
            return 130
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        # Nobody reads the output. Python would try again to write the rest when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="gridrpc session",
        description="Keep a grid and its results on this machine under a name, for programs that "
        "come and go. They use it by gridrpc.attach(NAME).",
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    start = commands.add_parser(
        "start",
        help="start a session, or continue with one that has ended",
        description="Start a session, or continue with one that has ended: with its maps, and by "
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

    cancel = commands.add_parser(
        "cancel",
        help="cancel maps and calls of a session",
        description="Cancel the items of maps and calls that have no result yet. Results stay. A "
        "program that sends a map again resumes it.",
    )
    cancel.set_defaults(run=_cancel)
    cancel.add_argument("name", metavar="NAME")
    cancel.add_argument("keys", metavar="KEY", nargs="*", help="keys of maps and calls")
    cancel.add_argument("--all", action="store_true", dest="everything", help="all maps and calls")

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


def _start(name: str, limit: float, quiet: bool, config: str | None, **settings: Any) -> None:
    folder = registry.folder_of(name)
    _refuse_running(name)
    settings = {key: value for key, value in settings.items() if value is not None}
    if config is not None:
        settings["config"] = os.path.abspath(config)
    directory = os.getcwd()
    earlier = folder / SETTINGS
    if not settings and earlier.is_file():
        known = json.loads(earlier.read_text(encoding="utf-8"))
        settings, directory = known["settings"], known["directory"]
    registry.make(name)
    log = folder / registry.LOG
    given = {"name": name, "limit": limit or None, "settings": settings}
    reason = _start_process(given, directory, log)
    if reason is not None:
        raise SessionError(f"session `{name}` could not be started: {reason}", name)
    earlier.write_text(json.dumps({"settings": settings, "directory": directory}), encoding="utf-8")
    if quiet:
        return
    record = registry.record_of(name)
    print(f"session {name} runs as process {record.pid}, {_until(record)}")
    print(f'programs attach by gridrpc.attach("{name}"); its log is {log}')
    if keys := registry.keys_in(folder):
        print(f"it continues with {', '.join(keys)}")


def _refuse_running(name: str) -> None:
    try:
        record = registry.record_of(name)
    except (LookupError, SessionError) as error:
        if getattr(error, "reason", ""):
            raise
        return
    _refuse_elsewhere(record, "stop it there, or choose another name")
    if record.state() == "running":
        raise SessionError(
            f"session `{name}` runs already, as process {record.pid}: "
            f"`gridrpc session show {name}`",
            name,
        )


def _refuse_elsewhere(record: SessionRecord, hint: str) -> None:
    if record.state() == "elsewhere":
        raise SessionError(f"session `{record.name}` runs on {record.host}: {hint}", record.name)


def _start_process(given: dict[str, Any], directory: str, log: Path) -> str | None:
    """Start the process of a session, without this terminal. Returns why it could not start."""
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as pipe:
        opened = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            process = subprocess.Popen(
                python_command("gridrpc._session.daemon"),
                stdin=subprocess.PIPE, stdout=opened, stderr=opened, cwd=directory,
                pass_fds=[writing], start_new_session=True, text=True,
            )  # fmt: skip
        except OSError as error:
            return str(error)
        finally:
            os.close(opened)
            os.close(writing)
        assert process.stdin is not None
        with suppress(BrokenPipeError), process.stdin as stdin:
            json.dump(given | {"pipe": writing}, stdin)
        answer = pipe.read()
    # Nobody waits for it, as it outlives this process.
    process.returncode = 0
    reason: str | None = json.loads(answer or json.dumps(f"its process ended: see {log}"))
    return reason


# ---- list, show


def _list(as_json: bool) -> None:
    names = registry.known()
    if as_json:
        _print_json([_summary_or_error(name) for name in names])
        return
    if not names:
        print("there are no sessions; `gridrpc session start NAME` starts one")
        return
    rows = [("NAME", "STATE", "PROCESS", "UNTIL", "MAPS")]
    for name in names:
        known = _summary_or_error(name)
        state = known.get("error") or known["state"]
        is_running = state == "running"
        rows.append((
            name,
            f"on {known['host']}" if state == "elsewhere" else state,
            str(known["process"]) if is_running else "-",
            _when(known["until"]) if is_running and known["until"] else "-",
            ", ".join(known.get("maps", ())) or "-",
        ))  # fmt: skip
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(map(str.ljust, row, widths)).rstrip())


def _summary_or_error(name: str) -> dict[str, Any]:
    try:
        return _summary(registry.record_of(name))
    except SessionError as error:
        return {"name": name, "error": str(error)}


def _summary(record: SessionRecord) -> dict[str, Any]:
    """A session by its record and folder. Times are seconds since 1970."""
    folder = registry.folder_of(record.name)
    state = record.state()
    return {
        "name": record.name,
        "state": state,
        "host": record.host,
        "process": record.pid,
        "since": record.since,
        "until": record.until,
        "ended": None if state in ("running", "elsewhere") else record.fate(),
        "log": str(folder / registry.LOG),
        "maps": registry.keys_in(folder),
    }


def _print_json(value: Any) -> None:
    print(json.dumps(value, indent=2))


def _show(name: str, as_json: bool) -> None:
    from gridrpc._session.attached import AttachedGrid

    record = registry.record_of(name)
    known = _summary(record)
    if known["state"] == "running":
        with AttachedGrid(name) as grid:
            status, _ = grid._request("status")
        known |= {**status, "maps": known["maps"], "progress": status["maps"]}
    if as_json:
        _print_json(known)
        return
    if known["state"] == "running":
        since = _when(record.since)
        print(f"session {name} runs as process {record.pid} since {since}, {_until(record)}")
        print(f"log: {known['log']}")
        _print_status(known)
        return
    if known["state"] == "elsewhere":
        print(f"session {name} runs on {record.host}: ask there")
    else:
        print(f"session {name} {'has ended' if record.ended else 'is stale'}: {known['ended']}")
        print(f"kept of it: {', '.join(known['maps']) or 'nothing'}")
    print(f"log: {known['log']}")


def _print_status(known: dict[str, Any]) -> None:
    print(f"attached: {known['attached']}")
    print(f"workers: {known['ready']} of {known['workers']} ready")
    for line in known["absent"]:
        print(f"  {line}")
    for key, of in known["progress"].items():
        items = f"{of['items']:,}" + ("" if of["complete"] else " or more")
        line = f"map {key}: {of['function']}, {of['results']:,} of {items} results"
        for what in ("failed", "under_way"):
            if of[what]:
                line += f", {of[what]:,} {what.replace('_', ' ')}"
        print(line)
        if of["halted"] is not None:
            print(f"  it has stopped: {of['halted']}")


def _until(record: SessionRecord) -> str:
    return "without a limit" if record.until is None else f"until {_when(record.until)}"


def _when(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))


# ---- cancel, stop


def _cancel(name: str, keys: list[str], everything: bool) -> None:
    from gridrpc._session.attached import AttachedGrid

    if bool(keys) == everything:
        raise ValueError("give keys of maps and calls, or --all")
    with AttachedGrid(name) as session:
        for key in session.maps if everything else keys:
            what = "cancelled" if session.cancel(key) else "not cancelled: it had ended"
            print(f"{key}: {what}")


def _stop(name: str, forget: bool, quiet: bool) -> None:
    record = registry.record_of(name)
    _refuse_elsewhere(record, "stop it there")
    if record.state() == "running":
        _end(record)
        lines = [f"session {name} has ended"]
    else:
        lines = [f"session {name} had ended before: {record.fate()}"]
    if forget:
        registry.forget(name)
        lines.append("its results are removed")
    elif keys := registry.keys_in(registry.folder_of(name)):
        lines.append(f"its results are kept ({', '.join(keys)}); `--forget` removes them")
    if not quiet:
        print("\n".join(lines))


def _end(record: SessionRecord) -> None:
    from gridrpc._session.attached import AttachedGrid

    try:
        with AttachedGrid(record.name) as grid:
            grid._request("stop")
    except SessionError:
        # It is ending, or has another version, or does not answer.
        _signal(record, signal.SIGTERM)
    if not _is_gone(record, END):
        _signal(record, signal.SIGKILL)
        _is_gone(record, END)


def _signal(record: SessionRecord, number: signal.Signals) -> None:
    if record.state() == "running":
        os.kill(record.pid, number)


def _is_gone(record: SessionRecord, seconds: float) -> bool:
    until = time.monotonic() + seconds
    while registry.started_at(record.pid) == record.started:
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True
