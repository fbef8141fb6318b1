"""Configuration of a grid: defaults, then a configuration file, then arguments."""

from __future__ import annotations

import numbers
import os
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, get_args, get_type_hints

from gridrpc import _native
from gridrpc.errors import ConfigError

WorkerKind = Literal["python", "native"]
Transport = Literal["unix", "tcp", "tls"]
Output = Literal["plain", "labelled", "captured"]
StartMethod = Literal["auto", "fork", "spawn"]
Leftovers = Literal["end", "keep"]
Progress = Literal["auto", "line", "log", "off"]

#: Bytes of a configuration file.
LARGEST = 1 << 20
#: The largest values of settings that have a bound of their own.
MOST = {"workers": 100_000, "retries": 1_000_000, "grace": 1e9, "stall": 1e9}


@dataclass(frozen=True, kw_only=True, slots=True)
class Config:
    """The configuration of a grid; also the keys of `[grid]` in a configuration file (TOML)."""

    workers: int = 0
    """Number of worker processes on this machine; 0: one for each processor, or none if there are
    servers."""
    worker: WorkerKind = "python"
    """What the workers run: "python": Python functions and those of compiled modules; "native":
    only those of compiled modules."""
    transport: Transport = "unix"
    """How the client reaches the workers of this machine. "unix": by Unix sockets and shared
    memory. "tcp", and "tls", which is encrypted: through an agent, as the workers of other
    machines."""
    servers: tuple[str, ...] = ()
    """Servers with workers: URLs such as "ssh://node1", or names of servers in the configuration
    file; if empty, all servers of the file."""
    directory: tuple[str, ...] = ()
    """URLs of directories that know the servers, such as "https://directory.example.org:7713". Each
    call goes to the server that suits it best; the grid has no workers and servers of its own."""
    policy: str = "least-time"
    """How the server of a call is chosen among those of a `directory`: "least-time", "least-load",
    "two-choices", "round-robin", "random" or "data-locality"."""
    memory: int | str = ""
    """Memory of this machine that calls may ask for, such as "64 GB"; empty: all that it has."""
    resources: dict[str, int] = field(default_factory=dict)
    """Other resources of this machine that calls may ask for, such as {"gpu": 2}."""
    max_queued: int = 100_000
    """Calls that may wait for a worker before `submit` waits."""
    max_queued_bytes: int = 256 << 20
    """Bytes of arguments that may wait for a worker before `submit` waits."""
    shared_threshold: int = 32 << 10
    """Size in bytes from which on arrays go through shared memory."""
    keep_free: int = 512 << 20
    """Bytes of free shared memory that are kept for later calls."""
    grace: float = 0.1
    """Seconds that a cancelled call may continue before its worker is ended."""
    retries: int = 3
    """How many workers a call declared idempotent may lose before it fails."""
    max_tasks_per_child: int = 0
    """How many calls a worker serves before another process takes its place; 0: any number."""
    start_method: StartMethod = "auto"
    """The process that Python workers are forked from. "spawn": a fresh interpreter; "fork": a
    fork of the client, with the modules that it has imported; "auto": "fork" where that is safe,
    otherwise "spawn"."""
    python: str = ""
    """The Python interpreter that Python workers on this machine run, such as
    "/opt/env/bin/python"; empty: the client's own. It needs gridrpc, and the client's minor version
    of Python."""
    environment: dict[str, str] = field(default_factory=dict)
    """Environment variables of the workers, here and on hosts, such as {"OMP_PROC_BIND": "true"}.
    The `environment` of a server takes precedence there. Numbers, True and False become texts."""
    cwd: str = ""
    """The folder that workers on this machine and in batch jobs run in; empty: that of the program
    when it opens the grid. A server's `directory` takes precedence there."""
    preload: tuple[str, ...] = ()
    """Modules that are loaded once on each machine, before the workers are forked, so that each
    worker that is ready has them: Python modules by name, compiled modules by file. With native
    workers a name is that of a compiled module."""
    threads: int = 0
    """Number of threads that numerical libraries may use in a worker; 0: as the client's
    environment says, otherwise an equal share of the processors for each worker."""
    mpirun: str = "mpirun"
    """The command that starts the ranks of calls with `ranks`; `-n` and their number follow."""
    modules: tuple[str, ...] = ()
    """Files of compiled modules, and folders with them, whose functions can be called. The
    modules that GRIDRPC_MODULE_PATH names and those of the catalogue come after them."""
    output: Output = "plain"
    """Where the output of workers goes: "plain": it is printed; "labelled": with the worker before
    each line; "captured": that of Python functions comes with the result, as `Call.stdout` and
    `Call.stderr`, and is not printed."""
    leftovers: Leftovers = "end"
    """Processes that functions have started: "end": they end with their worker; "keep": they
    stay."""
    stall: float = 10.0
    """Seconds that a worker may be stopped (by SIGSTOP) before it is ended; 0: forever."""
    progress: Progress = "auto"
    """How gridrpc reports hosts that take more than 2 s to start. "line": by a line on the terminal
    that is rewritten in place; "log": by a line for each change, every 30 s at most; "off": not
    at all; "auto": as the variable GRIDRPC_PROGRESS says, otherwise by a line if standard error
    is a terminal."""
    debug: str = ""
    """"wait": each worker waits for a debugger before its first call; or a command that starts one,
    such as "xterm -e gdb -p {pid}"."""

    def __post_init__(self) -> None:
        hints = get_type_hints(type(self))
        for one in fields(self):
            _check(one.name, getattr(self, one.name), hints[one.name])
        if self.directory and (self.workers or self.servers):
            raise ConfigError(
                "a grid with a `directory` has no `workers` and no `servers`: leave them out"
            )

    def resolved(self) -> Config:
        """The same with the number of workers filled in."""
        has_others = self.workers or self.servers or self.directory
        return self if has_others else replace(self, workers=processors())


def processors() -> int:
    """How many processors this process may use, by its affinity and its control groups' quotas."""
    return _native.processors()


def _check(name: str, value: Any, kind: Any) -> None:
    if name in ("memory", "resources", "environment"):
        _check_table(name, value)
        return
    if kind is str:
        if not isinstance(value, str):
            raise ConfigError(f"`{name}` is {value!r}: give a text")
        return
    if choices := get_args(kind):
        if choices[-1] is Ellipsis:
            if not (isinstance(value, tuple) and all(isinstance(item, str) for item in value)):
                raise ConfigError(f"`{name}` is {value!r}: give a list of names")
        elif value not in choices:
            known = " or ".join(repr(choice) for choice in choices)
            raise ConfigError(f"`{name}` is {value!r}: give {known}")
        return
    numeric = (int, float) if kind is float else int
    if isinstance(value, bool) or not isinstance(value, numeric):
        text = f"`{name}` is {value!r}: give a number"
        if name == "workers" and isinstance(value, tuple | list):
            text += ', or, of servers of a batch system, a range of nodes: `nodes = "1-4"`'
        raise ConfigError(text)
    most = MOST.get(name, 1 << 62)
    if not 0 <= value <= most:
        raise ConfigError(f"`{name}` is {value!r}: give a number from 0 to {most:,}")


def _check_table(name: str, value: Any) -> None:
    from gridrpc._environment import variables
    from gridrpc._options import amounts, memory_bytes

    try:
        if name == "environment":
            variables(value)
        elif name == "resources":
            amounts(value)
        elif value != "":
            memory_bytes(value)
    except (TypeError, ValueError) as error:
        raise ConfigError(str(error)) from None


def load(file: str | os.PathLike[str] | None, arguments: dict[str, Any]) -> Config:
    """The configuration in `file`, if one is named, with `arguments` above it (None: not given).

    Raises ConfigError for what cannot be read or makes no sense, naming file and key.
    """
    values: dict[str, Any] = {}
    if file is not None:
        values, servers = _read(file)
        if servers:
            values.setdefault("servers", servers)
        try:
            _build(values)
        except ConfigError as error:
            raise ConfigError(f"{file}: {error}") from None
    values.update((name, _plain(value)) for name, value in arguments.items() if value is not None)
    workers = _plain(arguments.get("workers"))
    if isinstance(workers, int) and workers <= 0:
        raise ConfigError(
            f"`workers` is {workers}: give a number from 1 to {MOST['workers']:,}, or leave it out"
        )
    return _build(values).resolved()


def _plain(value: Any) -> Any:
    """Integers of other kinds, such as NumPy's, as Python's own."""
    integer = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    return int(value) if integer else value


def _build(values: dict[str, Any]) -> Config:
    """A configuration from values as a file or a caller has them."""
    lists = {name: tuple(value) for name, value in values.items() if isinstance(value, list)}
    return Config(**{**values, **lists})


def _read(file: str | os.PathLike[str]) -> tuple[dict[str, Any], list[str]]:
    """The values of [grid], and the names of the servers."""
    import tomllib  # takes longer than the rest of this file, and most grids have no configuration

    try:
        with open(file, "rb") as opened:
            contents = opened.read(LARGEST + 1)
        if len(contents) > LARGEST:
            raise ConfigError(f"{file}: is larger than {LARGEST:,} bytes")
        document = tomllib.loads(contents.decode("utf-8-sig"))
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file}: is not valid TOML: {error}") from None
    unknown = [key for key in document if key not in ("grid", "defaults", "server")]
    table = document.get("grid", {})
    if unknown or not isinstance(table, dict):
        wrong = unknown[0] if unknown else "grid"
        raise ConfigError(
            f"{file}: unknown table `{wrong}`; the tables are [grid], [defaults] and [server.NAME]"
        )
    known = {one.name for one in fields(Config)}
    for key in table:
        if key not in known:
            names = ", ".join(sorted(known))
            raise ConfigError(f"{file}: unknown key `{key}` in [grid]; the keys are {names}")
    servers = document.get("server", {})
    return table, list(servers) if isinstance(servers, dict) else []
