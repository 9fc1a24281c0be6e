"""One small module per queue: how its no-op job is made, enqueued and drained. Each runs in its peer's own Python."""
