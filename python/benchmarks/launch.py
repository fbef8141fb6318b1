"""Pythons of engines that find this package as well as gridbench."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from gridbench.engines.environments import environment, folder_with, launch_of
from gridbench.process.launch import Launch


def launch_with_benchmarks(engine: str) -> Launch:
    """The Python of an engine. InputError if its environment is missing."""
    launch = launch_of(engine)
    own = environment(engine)
    if own is None:  # it is this Python
        return launch
    path = [launch.variables["PYTHONPATH"], folder_with(own.root, Path(__file__).resolve().parent)]
    variables = {**launch.variables, "PYTHONPATH": os.pathsep.join(map(str, path))}
    return replace(launch, variables=variables)
