"""Batch systems on one machine: rigs that start their daemons, for tests and benchmarks."""
