"""Quantities measured point by point, in fresh processes, round after round.

Whoever measures says which sessions there are, and what is shown of the points: gridbench.micro,
small workloads on all engines, and the package `benchmarks` of a checkout.
"""
