"""The conformance suite over each store that duly ships, and the comparison with the model."""
