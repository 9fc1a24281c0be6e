"""Halving a refused batch until the bad rows are alone."""

from collections.abc import Sequence
from datetime import timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duly.core.decide import completed
from duly.core.fingerprint import ErrorRecord
from duly.stores.faults import DataFault, Transient
from duly.worker.badrows import find_bad, poorer
from tests.worker.doubles import a_job

FAULT = DataFault("out of range")


@given(st.lists(st.booleans(), min_size=1, max_size=60))
def test_every_good_row_is_written_once_and_every_bad_one_found(rows: list[bool]) -> None:
    written: list[int] = []
    bad: list[int] = []

    def write(batch: Sequence[int]) -> None:
        if any(rows[index] for index in batch):
            raise FAULT
        written.extend(batch)

    find_bad(range(len(rows)), FAULT, write, lambda index, _: bad.append(index))

    expected = [index for index, is_bad in enumerate(rows) if is_bad]
    if len(rows) > 1:
        assert bad == expected
        assert sorted(written + bad) == list(range(len(rows)))


def test_an_outage_in_the_middle_passes_through() -> None:
    def write(_: Sequence[int]) -> None:
        raise Transient("connection refused")

    with pytest.raises(Transient):
        find_bad([1, 2], FAULT, write, lambda _, __: None)


def test_an_end_gets_poorer_until_nothing_is_left_to_leave_out() -> None:
    error = ErrorRecord("ValueError", "no", "…", "12345678")
    end = completed(a_job(), b"1", timedelta(seconds=1), "a note")
    whole = msgspec.structs.replace(end, error=error, reason="said")

    without_result = poorer(whole, "bad")
    assert without_result is not None
    without_words = poorer(without_result, "bad")
    assert without_words is not None

    assert (without_result.result, without_result.note) == (None, "result not storable: bad")
    assert without_result.error == error
    assert (without_words.error, without_words.reason) == (None, "its outcome could not be stored: bad")
    assert without_words.to is whole.to
