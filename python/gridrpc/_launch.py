"""How worker processes are started on this machine."""

from __future__ import annotations

import os
import sys
from types import FunctionType
from typing import Any

from gridrpc import _native
from gridrpc._config import Config, processors
from gridrpc._environment import variables
from gridrpc._frozen import SPAWNER, interpreter
from gridrpc._options import MEMORY, offered
from gridrpc._paths import BY_VALUE, on_the_wire
from gridrpc._versions import CLIENT_VERSIONS, described
from gridrpc.errors import ConfigError

#: Imported once, before the workers are forked, if the client has them loaded.
WORTH_SHARING = ("numpy", "cloudpickle", "scipy", "pandas", "sklearn", "joblib")
#: Those that take up to seconds, and that functions may not need.
SLOW = WORTH_SHARING[2:]
#: So many workers import them side by side in about the time that one import takes.
FEW = 4


#: What an interpreter of another installation runs as a spawner.
ELSEWHERE = ["-P", "-c", "from gridrpc._worker import main; main()"]
#: Options of an interpreter that its workers need as well.
FLAGS = (
    "debug",
    "dev_mode",
    "optimize",
    "no_user_site",
    "no_site",
    "ignore_environment",
    "verbose",
    "bytes_warning",
    "isolated",
    "safe_path",
    "utf8_mode",
)


def launch(config: Config, initializer: str | None) -> dict[str, Any]:
    """The program that starts workers, with its arguments, for the native grid.

    `initializer`: the file with what each Python worker runs first.
    """
    if config.worker == "native":
        return {
            "program": program(),
            "arguments": ["spawner"],
            "environment": _environment(config),
            "directory": _directory(config) if config.cwd else "",
            "path": [],
            "modules": [],
        }
    program_of_python = interpreter(config.python)
    first = [(SPAWNER, "1")]
    if initializer is not None:
        first.append(("GRIDRPC_INITIALIZER", initializer))
    started: dict[str, Any] = {
        "program": program_of_python,
        "environment": [*_environment(config), *first],
        "directory": _directory(config),
        "advice": f"`{'python' if config.python else 'sys.executable'}` has to be a Python "
        "interpreter that can import gridrpc"
        + (", and the modules in `preload` must not end it" if config.preload else ""),
    }
    if config.python:
        if config.start_method == "fork":
            raise ConfigError('`start_method` is "fork", but `python` names another interpreter')
        # It has modules of its own, and may be of another version.
        started["environment"].append((CLIENT_VERSIONS, described()))
        return {**started, "arguments": ELSEWHERE, "path": [], "modules": []}
    _, *arguments = python_command("gridrpc._worker")
    alone = 0 < config.workers <= min(FEW, processors()) and not config.servers
    if alone and not config.max_tasks_per_child:
        # Functions that need them import them. Otherwise all calls would wait for them.
        wanted = [name for name in WORTH_SHARING if name not in SLOW]
    else:
        wanted = [*WORTH_SHARING]
    loaded = [name for name in wanted if name in sys.modules]
    if "cloudpickle" not in loaded and _main_has_functions():
        # Few workers load it side by side, if they are sent such a function.
        few = config.workers <= processors()
        loaded.append(BY_VALUE if few else "cloudpickle")
    return {
        **started,
        "arguments": arguments,
        "path": [on_the_wire(entry) for entry in _path(config)],
        "modules": loaded,
        "forked": _fork(config),
    }


def servers(config: Config, file: str | os.PathLike[str] | None) -> dict[str, Any]:
    """The servers of the configuration, as arguments of the native grid.

    Raises ConfigError for what is no server, with all that is wrong with the file.
    """
    if not config.servers and config.transport == "unix":
        return {}
    found = _native.chosen_servers(list(config.servers), file) if config.servers else []
    if config.transport != "unix" and config.workers:
        found += _native.chosen_servers([_behind_agent(config)])
    python = config.worker == "python"
    return {
        "servers": found,
        "agent": program(),
        "here": interpreter(config.python) if python else "",
        "elsewhere": ELSEWHERE,
        "remote_environment": [
            *(_threads(config) if config.threads else []),
            *variables(config.environment),
            ("GRIDRPC_LEFTOVERS", config.leftovers),
            ("GRIDRPC_STALL", str(config.stall)),
        ],
        "python_environment": _python_environment(config) if python else [],
    }


def _behind_agent(config: Config) -> str:
    """A server for the workers of this machine, as a URL."""
    encryption = "tls" if config.transport == "tls" else "none"
    offers = ""
    if config.memory or config.resources:
        from urllib.parse import quote

        for name, amount in offered(config.memory, config.resources):
            is_memory = name == MEMORY
            offers += f"&memory={amount}B" if is_memory else f"&resources.{quote(name)}={amount}"
    # Their numbers are those of the only host, and say more than its name.
    return f"local:?workers={config.workers}&encryption={encryption}&output=plain{offers}"


def _fork(config: Config) -> _native.ForkedSpawner | None:
    """A spawner that is forked from the client, if there is to be one.

    Raises ConfigError if the configuration wants one and there can be none.
    """
    if config.start_method == "spawn" or config.transport != "unix" or not config.workers:
        return None
    from gridrpc import _forking

    wanted = config.start_method == "fork"
    why = _forking.threads_of_its_own() if wanted else _forking.objection()
    if why is None:
        environment = _environment(config)
        threads = dict(environment).get(_native.THREAD_VARIABLES[0], "")
        forked = _forking.fork_spawner(environment, int(threads) if threads.isdecimal() else 0)
        if forked is not None:
            return forked
        why = "a library that it has loaded has threads"
    if wanted:
        raise ConfigError(f'`start_method` is "fork", but {why}: leave it out, or give "spawn"')
    return None


def python_command(module: str) -> list[str]:
    """Command line that calls `main` of a module of this package in this Python.

    Until it has the client's module path, it imports nothing from the current folder, nor from this
    package's, whose modules may be named as those of the standard library.
    """
    home = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    code = f"import sys; sys.path.append({home!a}); from {module} import main; main()"
    return [interpreter(""), *_flags(), "-c", code]


def _flags() -> list[str]:
    """What the client's interpreter was started with, for another one that is to work as it does.

    And never the current folder before the standard library, which is where `-c` puts it.
    """
    # Loading `subprocess` takes 5 ms, which most clients need not spend.
    flags = ["-B"] if sys.dont_write_bytecode else []
    if sys.warnoptions or sys._xoptions or any(getattr(sys.flags, name) for name in FLAGS):
        from subprocess import _args_from_interpreter_flags as told  # type: ignore[attr-defined]

        flags = list(told())
    return flags if "-I" in flags or "-P" in flags else [*flags, "-P"]


def _path(config: Config) -> list[str]:
    """Where workers look for modules: where the client does, also if they run elsewhere."""
    entries = [entry for entry in sys.path if isinstance(entry, str)]
    return [os.path.abspath(entry) for entry in entries] if config.cwd else entries


def _directory(config: Config) -> str:
    """The folder of the workers; empty if it is the client's, which has been removed: they inherit
    it as it is. Raises ConfigError."""
    if config.cwd:
        folder = os.path.abspath(config.cwd)
        if not os.path.isdir(folder):
            raise ConfigError(f"`cwd` is `{config.cwd}`, which is no folder: make it first")
        return on_the_wire(folder)
    try:
        return on_the_wire(os.getcwd())
    except FileNotFoundError:
        return ""


def _main_has_functions() -> bool:
    """Whether functions of the main program are likely to be sent: by value, by cloudpickle."""
    main = sys.modules.get("__main__")
    values = list(vars(main).values()) if main is not None else []
    own = any(isinstance(v, FunctionType) and v.__module__ == "__main__" for v in values)
    return own or hasattr(sys, "ps1")


def _python_environment(config: Config) -> list[tuple[str, str]]:
    """What only the Pythons of hosts get."""
    elsewhere = config.servers or config.python
    return [(SPAWNER, "1"), *([(CLIENT_VERSIONS, described())] if elsewhere else [])]


def _threads(config: Config) -> list[tuple[str, str]]:
    if config.threads:
        return [(name, str(config.threads)) for name in _native.THREAD_VARIABLES]
    return _native.thread_environment(config.workers)


def _environment(config: Config) -> list[tuple[str, str]]:
    told = [
        *_threads(config),
        *variables(config.environment),
        ("GRIDRPC_LEFTOVERS", config.leftovers),
        ("GRIDRPC_STALL", str(config.stall)),
    ]
    return [*told, ("GRIDRPC_DEBUG", config.debug)] if config.debug else told


def program() -> str:
    """The `gridrpc` program that was installed with this package."""
    # Most often it lies beside Python. What tells the other places takes 7 ms to load.
    beside = os.path.join(os.path.dirname(sys.executable or ""), "gridrpc")
    # A frozen program may have that name itself.
    if beside != sys.executable and os.path.isfile(beside):
        return beside
    import shutil
    import sysconfig

    scripts = os.path.join(sysconfig.get_path("scripts"), "gridrpc")
    # Where `pip install --user` and `pip install --target` put programs.
    user = os.path.join(sysconfig.get_path("scripts", "posix_user"), "gridrpc")
    package = os.path.dirname(os.path.abspath(__file__))
    target = os.path.join(os.path.dirname(package), "bin", "gridrpc")
    # Debian has modules for all its environments in PREFIX/lib/python3/dist-packages.
    prefix = os.path.abspath(os.path.join(package, *[os.pardir] * 4))
    for place in (scripts, target, os.path.join(prefix, "bin", "gridrpc"), user):
        if os.path.isfile(place):
            return place
    found = os.environ.get("GRIDRPC_PROGRAM") or shutil.which("gridrpc")
    if found is None:
        raise ConfigError(
            f"native workers need the program `gridrpc`, which is neither at {scripts} nor on the "
            "PATH: install the package again, or name it in GRIDRPC_PROGRAM"
        )
    return found
