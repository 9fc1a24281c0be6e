"""Drills on the handlers of an App: real workers are killed, jobs come twice and in another order, and load is put on.

What users import: `Drill` to say what is drilled, `effect` to mark what must not happen twice.
"""

from duly.client.effects import effect

from .drill import Drill
from .report import Finding, Report

__all__ = ["Drill", "Finding", "Report", "effect"]
