"""What a timeline says: pure functions from the table of a run to numbers."""
