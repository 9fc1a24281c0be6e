"""Tests of the demo: its photographs, its resizing, its checks, and the whole run."""
