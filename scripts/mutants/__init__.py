"""What scripts/test-mutants is made of."""
