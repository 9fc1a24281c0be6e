"""Drills on handlers of a small shop, with real workers that really die."""
