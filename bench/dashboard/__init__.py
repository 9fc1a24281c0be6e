"""What `make bench-web` is made of: a store with millions of jobs, and everything that people ask of it over HTTP."""
