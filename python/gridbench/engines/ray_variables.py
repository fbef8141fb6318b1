"""Variables that Ray reads when it is imported, and that all processes of a cluster inherit."""

from __future__ import annotations

import os
import secrets

VARIABLES = {
    "RAY_USAGE_STATS_ENABLED": "0",
    # Without a word on tokens, a head asks all for the one in its user's home folder if there is
    # one, such as `ray.init` leaves there. Clients and nodes that are given the head's address do
    # not look for it, and hosts have other home folders. So each cluster has a token of its own.
    "RAY_AUTH_MODE": "token",
    # A worker that imports this has its cluster's.
    "RAY_AUTH_TOKEN": os.environ.get("RAY_AUTH_TOKEN") or secrets.token_hex(32),
}
