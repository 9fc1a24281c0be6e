"""The parts of bench/beside.py: what a queue costs the application in the same database, NOTIFY, and a pooler."""
