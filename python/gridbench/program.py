"""The entry point of the program `gridbench`, which tells what is missing if its packages are."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

#: What the extra `gridbench` of the package installs, as pyproject.toml lists it.
_SAME = ("click", "jinja2", "plotly", "psutil", "pyarrow", "rich", "scipy")
EXTRA = {name: name for name in _SAME} | {"opentelemetry": "opentelemetry-api"}
"""The packages of the extra `gridbench` by their modules."""


class _NoPandas:
    """A finder of modules that says that there is no pandas."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> None:
        """Like `importlib.abc.MetaPathFinder`."""
        del path, target
        if fullname == "pandas":
            raise ModuleNotFoundError("pandas has no use here", name=fullname)


_NO_PANDAS = _NoPandas()


def without_pandas() -> None:
    """Hide pandas from pyarrow, which imports it where it is installed: a quarter of a second, for
    the first list that becomes a column. gridbench has no use for it."""
    sys.meta_path.insert(0, _NO_PANDAS)


def with_pandas() -> None:
    """Let it be found again, by code of others."""
    if _NO_PANDAS in sys.meta_path:
        sys.meta_path.remove(_NO_PANDAS)


def main() -> None:
    """Run the program. Exit status 2 if it is not installed completely."""
    without_pandas()
    try:
        from gridbench.cli import main as run

        run()
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in EXTRA:
            raise
        print(
            f"gridbench: error: it needs the package `{EXTRA[missing]}`, which is not installed\n"
            "hint: pip install 'gridrpc[gridbench]' installs all that it needs",
            file=sys.stderr,
        )
        sys.exit(2)
