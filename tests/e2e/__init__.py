"""Real worker processes on real stores: killed, stopped, told to end, and given handlers that misbehave."""
