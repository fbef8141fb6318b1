"""What the stamps say: pure functions of the timeline."""
