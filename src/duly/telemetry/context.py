"""Whose work this context does: what middleware took from a request, for enqueues and log lines to say.

Set by whoever begins a request, read by what happens in it. Knows neither jobs nor HTTP.
"""

from contextvars import ContextVar
from typing import Final

correlation: Final[ContextVar[str | None]] = ContextVar("duly_correlation", default=None)
"""The correlation id of jobs that say none themselves: at most 200 characters, no control characters."""

traceparent: Final[ContextVar[str | None]] = ContextVar("duly_traceparent", default=None)
"""A W3C traceparent of version 00, checked."""
