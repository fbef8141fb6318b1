"""Simulated runs of modelled systems, with up to a million cores."""
