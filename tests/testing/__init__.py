"""The testing kit, tested as its users use it."""
