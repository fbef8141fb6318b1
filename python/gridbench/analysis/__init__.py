"""Pure functions from the timeline of a run to its figures."""
