"""Running a workload on an engine, and keeping what was measured."""
