"""What can be said of repeated measurements: medians, intervals, ratios, and when to claim."""
