"""gridbench: one workload, any engine, the same timestamps."""
