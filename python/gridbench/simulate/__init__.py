"""Runs that nobody has made: the pipeline model of a system, with up to a million cores."""
