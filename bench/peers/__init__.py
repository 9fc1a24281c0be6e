"""duly beside its peers: rows, workloads, targets and tables of `make bench` and `make bench-peers`."""
