"""Statistics of repeated measurements: medians, intervals, ratios and claims."""
