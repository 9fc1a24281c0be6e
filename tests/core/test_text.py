"""Text made storable: what every database takes, within its bound."""

from hypothesis import given
from hypothesis import strategies as st

from duly.core.text import storable
from tests.core.handlers import FEW

ANY_TEXT = st.text(st.characters(exclude_categories=()))


def test_plain_text_stays_as_it_is() -> None:
    assert storable("naïve ☃ text\n", 100) == "naïve ☃ text\n"


def test_nul_and_halves_of_pairs_are_written_out() -> None:
    assert storable("a\x00b\ud800c", 100) == r"a\u0000b\ud800c"


def test_long_text_ends_in_an_ellipsis_within_its_bytes() -> None:
    assert storable("x" * 50, 10) == "xxxxxxx…"
    assert storable("é" * 50, 10) == "ééé…"
    assert storable("é" * 5, 10) == "ééééé"


@FEW
@given(ANY_TEXT, st.integers(min_value=3, max_value=200))
def test_any_text_fits_and_encodes(text: str, most: int) -> None:
    found = storable(text, most)

    assert len(found.encode()) <= most
    assert "\x00" not in found
