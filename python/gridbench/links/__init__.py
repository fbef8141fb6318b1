"""Links of known rate on one machine: network namespaces behind shaped pairs of virtual devices."""
