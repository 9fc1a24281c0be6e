"""A filter as one line of text: what it means, what it says of mistakes, and how it is completed."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duly.core.errors import UsageError
from duly.core.filter_text import LONGEST, complete, read_filter, write_filter
from duly.core.filters import Filter, parse_where
from duly.core.lifecycle import State

NOW = datetime(2030, 5, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("", Filter()),
        ("  ", Filter()),
        ("queue=mail state=dead", Filter(queue="mail", state=State.dead)),
        ("dead queue:mail", Filter(queue="mail", state=State.dead)),
        ("State=Dead", Filter(state=State.dead)),
        ('tag="two words" task=send', Filter(tag="two words", task="send")),
        ('tag="a\\"b"', Filter(tag='a"b')),
        ("since=2h", Filter(since=NOW - timedelta(hours=2))),
        ("until=2030-05-01T09:00Z", Filter(until=datetime(2030, 5, 1, 9, tzinfo=UTC))),
        ("args.order_id = 7 state=ready", Filter(state=State.ready, where="args.order_id = 7")),
        ("args.order_id=7", Filter(where="args.order_id=7")),
        ('args.lines[0].sku = "a b" queue=mail', Filter(queue="mail", where='args.lines[0].sku = "a b"')),
        ('args["a b"] >= 1', Filter(where='args["a b"] >= 1')),
    ],
)
def test_a_line_means_a_filter(text: str, meant: Filter) -> None:
    assert read_filter(text, NOW) == meant


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("quue=mail", "did you mean queue=?"),
        ("colour=red", "write one of state, queue"),
        ("mail", "queue=mail or task=mail"),
        ("state=ded", "did you mean dead?"),
        ("state=", "has no value"),
        ("queue=a queue=b", "there twice"),
        ("args.a == 7", "write = instead of =="),
        ("args.a =", "compares with nothing"),
        ("since=noon", "since"),
        ("queue=a,b", "separates names"),
        ("fingerprint=xyz", "4 to 8 digits"),
        ("x" * (LONGEST + 1), "at most"),
    ],
)
def test_a_mistake_is_told_with_its_remedy(text: str, said: str) -> None:
    with pytest.raises(UsageError) as told:
        read_filter(text, NOW)

    assert said in str(told.value)


NAMES = st.text(
    st.characters(codec="utf-8", exclude_categories=["C", "Z"]) | st.just(" "), min_size=1
).filter(lambda text: text == text.strip() and 0 < len(text) <= 60)


@given(
    tag=st.none() | NAMES,
    tenant=st.none() | NAMES,
    state=st.none() | st.sampled_from(State),
    since=st.none() | st.integers(0, 2**31).map(lambda at: datetime.fromtimestamp(at, UTC)),
)
def test_what_is_written_is_read_as_the_same(
    tag: str | None, tenant: str | None, state: State | None, since: datetime | None
) -> None:
    filter = Filter(tag=tag, tenant=tenant, state=state, since=since)

    assert read_filter(write_filter(filter), NOW) == filter


@pytest.mark.parametrize(
    "where",
    [
        "args.a = hello world",
        'args.lines[0]["a b"] = x y',
        "args.a = [1, 2]",
        'args.a = {"b": "c d"}',
        "args.a = 'x y'",
        "args.a > 1.5",
    ],
)
def test_comparisons_of_flags_are_written_as_one_part(where: str) -> None:
    text = write_filter(Filter(where=where, queue="mail"))

    read = read_filter(text, NOW)

    assert read.queue == "mail"
    assert read.where is not None
    assert parse_where(read.where) == parse_where(where)


@given(st.text(max_size=80))
def test_any_text_is_read_or_refused(text: str) -> None:
    complete(text, {"queue": ["mail"]})
    try:
        read_filter(text, NOW)
    except UsageError:
        pass


KNOWN = {"queue": ["mail", "reports", "email"], "task": ["send_receipt"], "tenant": ["a b"]}


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("", "state="),
        ("qu", "queue="),
        ("queue=m", "queue=mail "),
        ("queue=ail", "queue=mail "),
        ("state=dead queue=rep", "state=dead queue=reports "),
        ("tenant=a", 'tenant="a b" '),
        ('tenant="a', 'tenant="a b" '),
        ("state=co", "state=completed "),
        ("comp", "state=completed "),
        ("since=", "since=15m "),
        ("ar", "args."),
        ("queue=mail ", "queue=mail state="),
    ],
)
def test_completion_goes_on_from_what_is_typed(text: str, first: str) -> None:
    assert complete(text, KNOWN)[0].text == first


def test_completion_offers_no_field_twice_and_nothing_where_nothing_fits() -> None:
    assert "queue=mail queue=" not in [one.text for one in complete("queue=mail ", KNOWN)]
    assert [one.text for one in complete("queue=mail", KNOWN)] == ["queue=mail ", "queue=email "]
    assert complete("zzz", KNOWN) == []
    assert complete("x" * (LONGEST + 1), KNOWN) == []
