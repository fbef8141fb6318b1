"""Advice: task size, number of cores and data transport for a user's own work."""
