"""What the OpenAPI document says of names is what is accepted: clients are made from it, servers are tried with it."""

import re
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duly.client import asked
from duly.core.errors import UsageError
from duly.core.names import Kind, check_name

NAMES: dict[Kind, Any] = {
    "queue": asked.QueueName,
    "task": asked.TaskName,
    "tenant": asked.TenantName,
    "tag": asked.TagName,
    "correlation id": asked.CorrelationName,
    "key": asked.KeyName,
}
# Of all characters too few are among those that decide.
SOME = st.text(
    st.sampled_from("ab,: \t\x00\x1f\x7f\x85\u2028\u200bö𤭩") | st.characters(codec="utf-8"), max_size=12
)


@pytest.mark.parametrize("kind", NAMES)
@given(name=SOME)
def test_a_name_fits_the_document_if_and_only_if_it_is_accepted(kind: Kind, name: str) -> None:
    schema = get_args(NAMES[kind])[1].extra_json_schema
    # In JSON Schema a dollar means the end, and no line end before it.
    fits = re.search(schema["pattern"].replace("$", r"\Z"), name) is not None

    assert fits == accepted(kind, name)


@pytest.mark.parametrize("kind", NAMES)
def test_the_document_knows_how_long_a_name_may_be(kind: Kind) -> None:
    most = get_args(NAMES[kind])[1].extra_json_schema["maxLength"]

    assert accepted(kind, "x" * most)
    assert not accepted(kind, "x" * (most + 1))


def accepted(kind: Kind, name: str) -> bool:
    try:
        return check_name(kind, name) == name
    except UsageError:
        return False
