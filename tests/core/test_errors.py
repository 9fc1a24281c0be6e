"""The errors: one tree, drawn where they stand, each with its data and ready to cross a process boundary."""

import pickle
import re

import pytest

from duly.core import errors
from duly.core.errors import DulyError, LeaseLost, MigrationNeeded, NotFound, PayloadError

ALL = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, DulyError)]


def test_the_tree_in_the_docstring_names_every_error() -> None:
    drawn = re.findall(r"(?:├──|└──) (\w+)", errors.__doc__ or "")

    assert sorted([*drawn, "DulyError"]) == sorted(kind.__name__ for kind in ALL)


@pytest.mark.parametrize("kind", ALL)
def test_every_error_says_what_to_do(kind: type[DulyError]) -> None:
    assert kind.__doc__ is not None
    assert ":" in kind.__doc__.splitlines()[0]


def test_a_payload_error_is_a_value_error_and_knows_its_place() -> None:
    error = PayloadError("argument 'order.id' is nan", path="order.id")

    assert isinstance(error, ValueError)
    assert error.path == "order.id"


@pytest.mark.parametrize(
    "error",
    [
        PayloadError("x", path="a.b"),
        LeaseLost("x", job_id=7),
        NotFound("x", kind="queue", name="mail"),
        MigrationNeeded("x", found=1, wanted=2),
    ],
)
def test_an_error_keeps_its_data_from_one_process_to_another(error: DulyError) -> None:
    arrived = pickle.loads(pickle.dumps(error))

    assert type(arrived) is type(error)
    assert str(arrived) == "x"
    assert vars(arrived) == vars(error)
