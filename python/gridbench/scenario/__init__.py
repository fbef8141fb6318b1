"""The six scenarios of the compute-grid benchmark: grids of cases, run one by one."""
