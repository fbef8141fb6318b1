"""Servers and file systems on this machine that a benchmark puts under load."""
