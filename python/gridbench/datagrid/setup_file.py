"""The XML set-up file of the data-grid benchmark.

    <DataGridSetup>
    <NNodes>         4    </NNodes>
    <MNodes>         3    </MNodes>
    <NTasks>         24   </NTasks>
    <NRepeats>       100  </NRepeats>
    <ReadDataSize>   1    </ReadDataSize>
    <UpdateDataSize> 1    </UpdateDataSize>
    <NObjects>       800  </NObjects>
    <ObjectSize>     1    </ObjectSize>
    </DataGridSetup>

The other tags are WriteDataSize, SharedDataSize, ProcessTime and SleepTime. Those, ReadDataSize and
UpdateDataSize may be left out, and then are 0. ObjectSize is in KB of 1024 bytes, SleepTime in
seconds.
"""

from __future__ import annotations

from pathlib import Path

from gridbench.datagrid.parameters import LIMITS, NAMES, NEEDED, REALS, Parameters, remedy_of
from gridbench.errors import InputError
from gridbench.xml_setup import SetupReader

ROOT = "DataGridSetup"
EXAMPLE = "examples/data/setup.xml"
_OPTIONAL = tuple(name for name in NAMES if name not in NEEDED)


def read_setup(path: Path) -> Parameters:
    """Read the set-up file at `path`; InputError names file, line and remedy."""
    found = SetupReader(path, root=ROOT, tags=tuple(NAMES), optional=_OPTIONAL, example=EXAMPLE)
    values: dict[str, float] = {}
    for name, (low, high) in LIMITS.items():
        if name not in found:
            continue
        if name in REALS:
            values[name] = found.real(name, low, high, remedy_of(name))
        else:
            values[name] = found.whole(name, int(low), int(high), remedy_of(name))
    try:
        return Parameters.from_dict(values)
    except InputError as error:  # what is wrong with several of them together
        raise InputError(error.what, file=path, remedy=error.remedy) from None
