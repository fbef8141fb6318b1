"""What results of all benchmarks have in common: what can be asked of them, whatever made them."""
