"""Hosts of a benchmark: discovery, a remote object on each host, and their clocks."""
