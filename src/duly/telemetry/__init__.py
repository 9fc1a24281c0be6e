"""What happens inside duly, as typed events; whoever wants logs, metrics or traces listens."""
