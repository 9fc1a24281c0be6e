"""The routes below /v1, one module per thing they are about."""
