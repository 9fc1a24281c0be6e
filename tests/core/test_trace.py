"""Traceparents and what jobs carry of them."""

import pytest

from duly.core.trace import (
    is_trace,
    made_traceparent,
    parent_of,
    read_traceparent,
    traceparent_of,
    trigger_with,
)

TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


@pytest.mark.parametrize(
    ("header", "read"),
    [
        (TRACE, TRACE),
        (f" {TRACE} ", TRACE),
        (f"cc{TRACE[2:]}-what-the-future-adds", TRACE),
        (f"{TRACE}-more", None),
        (f"ff{TRACE[2:]}", None),
        (TRACE.upper(), None),
        ("00-00000000000000000000000000000000-00f067aa0ba902b7-01", None),
        ("00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01", None),
        ("<script>", None),
        ("", None),
        (None, None),
    ],
)
def test_a_header_that_is_no_traceparent_counts_as_none(header: str | None, read: str | None) -> None:
    assert read_traceparent(header) == read


def test_a_trigger_gives_back_the_span_and_the_job_that_enqueued() -> None:
    alone, inside = trigger_with(TRACE), trigger_with(TRACE, 41)

    assert (traceparent_of(alone), parent_of(alone)) == (TRACE, None)
    assert (traceparent_of(inside), parent_of(inside)) == (TRACE, 41)
    assert is_trace(alone)
    assert is_trace(inside)


@pytest.mark.parametrize("trigger", [None, "", "schedule:digest@2030-05-01T09:00:00Z", "batch:7", "trace:?"])
def test_other_triggers_are_no_trace(trigger: str | None) -> None:
    assert traceparent_of(trigger) is None
    assert parent_of(trigger) is None


def test_a_made_traceparent_is_one() -> None:
    made = made_traceparent(b"\x01" * 16, b"\x02" * 8)

    assert read_traceparent(made) == made
