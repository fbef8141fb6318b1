"""Detection of other programs that disturb a measurement: one rule, one policy."""
