"""The entry point of the program `gridbench`, which tells what is missing if its packages are."""

from __future__ import annotations

import sys

#: What the extra `gridbench` of the package installs, as pyproject.toml lists it.
_SAME = ("click", "defusedxml", "jinja2", "plotly", "psutil", "pyarrow", "rich", "scipy")
EXTRA = {name: name for name in _SAME} | {"opentelemetry": "opentelemetry-api"}
"""The packages of the extra `gridbench` by their modules."""


def main() -> None:
    """Run the program. Exit status 2 if it is not installed completely."""
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
