"""Choice among servers of a network: policies simulated and run on one scenario."""
