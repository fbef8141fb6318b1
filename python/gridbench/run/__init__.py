"""Runs of a workload on engines, and their records."""
