"""duly's own tests. What users import into theirs is duly.testing."""
