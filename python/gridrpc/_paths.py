"""What client and spawner tell each other of files and modules.

Texts in messages are UTF-8, as paths need not be: a path has a character for each byte.
"""

from __future__ import annotations

import os

#: What unpickles functions that came by value, with cloudpickle, which takes as long to load as two
#: workers to start. A spawner that is told of it alone loads it when the first workers are there.
BY_VALUE = "gridrpc._by_value"


def on_the_wire(path: str) -> str:
    """A path as it is sent, a character for each of its bytes: it need not be UTF-8."""
    return os.fsencode(path).decode("latin-1")


def from_the_wire(sent: str) -> str:
    """What `on_the_wire` was given."""
    return os.fsdecode(sent.encode("latin-1"))
