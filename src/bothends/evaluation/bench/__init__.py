"""The benchmark: systems, peers, workloads, clocks, tables."""
