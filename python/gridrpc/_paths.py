"""Paths in messages, whose texts are UTF-8, as paths need not be: a character for each byte."""

from __future__ import annotations

import os


def on_the_wire(path: str) -> str:
    """A path as it is sent, a character for each of its bytes: it need not be UTF-8."""
    return os.fsencode(path).decode("latin-1")


def from_the_wire(sent: str) -> str:
    """What `on_the_wire` was given."""
    return os.fsdecode(sent.encode("latin-1"))
