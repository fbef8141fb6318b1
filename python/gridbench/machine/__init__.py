"""Whether other programs use the machine that something is measured on: one rule, one policy."""
