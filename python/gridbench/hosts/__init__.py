"""Hosts that a benchmark uses: which there are, a remote object on each of them, their clocks."""
