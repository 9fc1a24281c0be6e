"""Tests of the house itself: its sizes, its words, its files and its commands."""
