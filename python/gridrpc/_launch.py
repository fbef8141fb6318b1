"""How worker processes are started on this machine."""

from __future__ import annotations

import os
import sys
from types import FunctionType
from typing import Any

from gridrpc._config import Config, processors
from gridrpc.errors import ConfigError

#: Imported once, before the workers are forked, if the client has them loaded.
WORTH_SHARING = ("numpy", "cloudpickle", "scipy", "pandas", "sklearn", "joblib")

#: Numerical libraries start as many threads as there are processors, in every worker.
THREADS = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
)


def launch(config: Config) -> dict[str, Any]:
    """The program that starts workers, and what it is told, as arguments of the native grid."""
    if config.worker == "native":
        return {
            "program": program(),
            "arguments": ["spawner"],
            "environment": _environment(config),
            "directory": "",
            "path": [],
            "modules": [],
        }
    home = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    code = f"import sys; sys.path.insert(0, {home!r}); from gridrpc._worker import main; main()"
    loaded = [name for name in WORTH_SHARING if name in sys.modules]
    if "cloudpickle" not in loaded and _main_has_functions():
        loaded.append("cloudpickle")
    return {
        "program": sys.executable,
        "arguments": ["-c", code],
        "environment": _environment(config),
        "directory": os.getcwd(),
        "path": [str(entry) for entry in sys.path],
        "modules": [*loaded, *config.preload],
    }


def _main_has_functions() -> bool:
    """Whether functions of the main program are likely to be sent: by value, by cloudpickle."""
    main = sys.modules.get("__main__")
    values = list(vars(main).values()) if main is not None else []
    own = any(isinstance(v, FunctionType) and v.__module__ == "__main__" for v in values)
    return own or hasattr(sys, "ps1")


def _environment(config: Config) -> list[tuple[str, str]]:
    share = str(max(1, processors() // config.workers))
    threads = [(name, share) for name in THREADS if name not in os.environ]
    return [*threads, ("GRIDRPC_DEBUG", config.debug)] if config.debug else threads


def program() -> str:
    """The `gridrpc` program that was installed with this package."""
    # Most often it lies beside Python. What tells the other places takes 7 ms to load.
    beside = os.path.join(os.path.dirname(sys.executable), "gridrpc")
    if os.path.isfile(beside):
        return beside
    import shutil
    import sysconfig

    scripts = os.path.join(sysconfig.get_path("scripts"), "gridrpc")
    if os.path.isfile(scripts):
        return scripts
    found = os.environ.get("GRIDRPC_PROGRAM") or shutil.which("gridrpc")
    if found is None:
        raise ConfigError(
            f"native workers need the program `gridrpc`, which is neither at {scripts} nor on the "
            "PATH: install the package again, or name it in GRIDRPC_PROGRAM"
        )
    return found
