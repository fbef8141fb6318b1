"""Facts of the machine and the versions in use, for the record of a run."""

from __future__ import annotations

import contextlib
import os
import platform
import resource
import sys
import time
from importlib import metadata
from pathlib import Path
from typing import Any

import psutil

from gridbench.jsonl_store import Header
from gridrpc._native import processors

SHARED_MEMORY = Path("/dev/shm")
_KEPT = ("host", "system", "processor", "cores", "cores_usable", "memory")
_PACKAGES = ("gridrpc", "numpy", "pyarrow", "plotly", "psutil", "cloudpickle")


def machine_facts() -> dict[str, Any]:
    """Host, system, processor, memory and limits; sizes in bytes."""
    memory = psutil.virtual_memory()
    return {
        "host": platform.node(),
        "system": platform.platform(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "cores_usable": usable_processors(),
        "load_average": [round(load, 2) for load in os.getloadavg()],
        "memory": memory.total,
        "memory_available": available_memory(),
        "swap": psutil.swap_memory().total,
        "shared_memory_free": free_shared_memory(),
        "open_files_limit": resource.getrlimit(resource.RLIMIT_NOFILE)[0],
        "processes_limit": resource.getrlimit(resource.RLIMIT_NPROC)[0],
        "clock": "CLOCK_MONOTONIC, resolution 1 ns",
    }


def versions() -> dict[str, str]:
    """Python, and those of our packages that are installed."""
    found = {"python": platform.python_version(), "implementation": sys.implementation.name}
    for package in _PACKAGES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[package] = metadata.version(package)
    return found


def new_header(options: dict[str, Any], *, seed: int = 0) -> Header:
    """That of what is measured from now on, on this machine, with these options."""
    facts = machine_facts()
    return Header(
        machine={name: facts[name] for name in _KEPT},
        versions=versions(),
        options=options,
        started=time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        seed=seed,
    )


def usable_processors() -> int:
    """How many of the machine's processors this process may use, quotas of containers included."""
    return processors()


def available_memory() -> int:
    """Bytes that can be used before the machine, or this process's control group, runs short."""
    available: int = psutil.virtual_memory().available
    for limit_file, used_file in (
        ("memory.max", "memory.current"),
        ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
    ):
        limit, used = _group_number(limit_file), _group_number(used_file)
        if limit is not None and used is not None:
            # What the group holds as file cache can be dropped, so this is a low estimate.
            available = min(available, max(0, limit - used))
    return available


def free_shared_memory() -> int | None:
    """Bytes free in /dev/shm; None if there is none."""
    try:
        return int(psutil.disk_usage(str(SHARED_MEMORY)).free)
    except OSError:
        return None


def _processor() -> str:
    with contextlib.suppress(OSError), open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _group_number(name: str) -> int | None:
    try:
        return int(Path("/sys/fs/cgroup", name).read_text(encoding="ascii"))
    except (OSError, ValueError):  # another layout, or "max"
        return None
