"""Servers and file systems, each with daemons of its own."""
