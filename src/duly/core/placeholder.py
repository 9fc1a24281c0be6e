"""RESULT, which stands in a follow-up's arguments for the result of the job before it.

Knows neither how it is written nor who fills it in.
"""

from typing import Any, Final


class Placeholder:
    """Where the result of the job before goes: `then=[archive.draft(RESULT)]`."""

    def __repr__(self) -> str:
        return "RESULT"

    def __reduce__(self) -> str:
        # There is one: copies and pickles are the same object.
        return "RESULT"


RESULT: Final[Any] = Placeholder()
"""The result of the job that a draft in `then=` follows; goes anywhere inside its arguments. The only untyped one."""
