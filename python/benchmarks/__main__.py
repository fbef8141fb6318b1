"""`python -m benchmarks`."""

from benchmarks.options import measure_areas
from gridbench.command_line import run_command

if __name__ == "__main__":
    run_command(measure_areas, "python -m benchmarks")
