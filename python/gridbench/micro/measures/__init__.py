"""Measurements of the micro benchmarks: functions that run in a client and return a point."""
