"""What a mutant is: one small textual change to src/duly that breaks one promise."""

from typing import Literal, NamedTuple

Hunt = Literal["core", "sqlite", "postgres", "simulation"]


class Mutant(NamedTuple):
    """`old` occurs exactly once in `file` (below src/duly) and becomes `new`."""

    file: str
    old: str
    new: str
    breaks: str
    """The promise that no longer holds."""
    areas: tuple[str, ...] = ()
    """Areas of the suite, or seeds of the simulation, to look in first; the rest follows."""
    tests: tuple[str, ...] = ()
    """What pytest runs instead, options included: for what shows for certain only where a test holds a lock by hand."""

    @property
    def hunt(self) -> Hunt:
        if self.file.startswith("worker/"):
            return "simulation"
        if self.file.startswith("stores/postgres/"):
            return "postgres"
        return "sqlite" if self.file.startswith("stores/") else "core"
