"""Models that predict the time of a run from a few parameters."""
