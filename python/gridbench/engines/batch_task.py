"""The process of a task that is a batch job, by the place of its files and its number."""

from __future__ import annotations

import os
import pickle
import sys
from pathlib import Path

from gridbench.engines.files import keep_result

if __name__ == "__main__":
    # An array tells each of its tasks which it is.
    number = int(sys.argv[2]) + int(os.environ.get("SLURM_ARRAY_TASK_ID", "0"))
    place = Path(sys.argv[1], str(number))
    function, args = pickle.loads(place.with_suffix(".in").read_bytes())
    keep_result(place.with_suffix(".out"), function, args)
