"""What measures: `duly bench` over real stores, and the pieces of the benchmarks that can be wrong quietly."""
