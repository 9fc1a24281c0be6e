"""When a process tells the store how uses of resources ended."""

from duly.worker.usage import Usage


def test_the_first_use_after_a_pause_is_told_at_once_and_the_others_together() -> None:
    told: list[str] = []
    usage = Usage()
    usage.soon = lambda: told.append("now")

    usage.note("resource:api", 1, 1)
    first = usage.take()
    usage.note("resource:api", 1, 0)
    usage.note("resource:api", 1, 1)
    busy = (usage.take(), list(told))
    assert usage.take() == []
    usage.note("resource:api", 1, 0)

    assert [(one.calls, one.failures) for one in first] == [(1, 1)]
    assert [(one.calls, one.failures) for one in busy[0]] == [(2, 1)]
    assert busy[1] == ["now"]
    assert told == ["now", "now"]
