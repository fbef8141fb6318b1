"""Quantities measured point by point, in fresh processes, round after round.

gridbench.micro and the package `benchmarks` of a checkout say which sessions there are, and show
the points.
"""
