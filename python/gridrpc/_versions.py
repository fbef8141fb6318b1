"""Versions of Python and of packages here and on other hosts, which pickles depend on."""

from __future__ import annotations

import os
import sys

#: The environment variable that gives workers on other hosts the client's versions.
CLIENT_VERSIONS = "GRIDRPC_CLIENT"
#: Packages whose pickles another version may not read.
PACKAGES = ("gridrpc", "numpy", "cloudpickle")


def described() -> str:
    """The versions of this process, in the form that workers get: "python 3.11.7;numpy 2.1.0"."""
    own = {"python": ".".join(map(str, sys.version_info[:3])), **_packages()}
    return ";".join(f"{name} {version}" for name, version in own.items())


def check() -> None:
    """In a worker's process on another host: compare the client's versions with the own ones.

    Another minor version of Python ends this process, since it may not read the client's functions;
    packages that differ are listed in one line, for many programs do not care.
    """
    reported = os.environ.pop(CLIENT_VERSIONS, "")
    theirs = dict(one.split(" ", 1) for one in reported.split(";") if " " in one)
    python = theirs.pop("python", None)
    if python is None:
        return
    ours = ".".join(map(str, sys.version_info[:3]))
    if python.split(".")[:2] != ours.split(".")[:2]:
        print(
            f"gridrpc: Python {ours} ({sys.executable}) is of another minor version than the "
            f"client's Python {python}, whose functions it may not be able to run",
            file=sys.stderr, flush=True,
        )  # fmt: skip
        # Nothing has begun that would have to be ended.
        os._exit(1)
    own = _packages()
    differing = [
        f"{name} {own[name]} (the client has {version})"
        for name, version in theirs.items()
        if name in own and own[name] != version
    ]
    if differing:
        print(
            f"gridrpc: versions here differ from the client's, and what one pickles the other may "
            f"not read: {', '.join(differing)}",
            file=sys.stderr, flush=True,
        )  # fmt: skip


def _packages() -> dict[str, str]:
    # Takes 20 ms: only grids with hosts are to pay for it.
    from importlib import metadata

    import gridrpc

    found = {"gridrpc": gridrpc.__version__}
    for name in PACKAGES[1:]:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found
