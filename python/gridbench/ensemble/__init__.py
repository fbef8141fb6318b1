"""The weather ensemble on one or several clusters."""
