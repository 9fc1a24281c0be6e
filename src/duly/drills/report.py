"""What a drill has shown: what befell the jobs, and what did not hold. Pure: reads marks, starts nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct, field

from duly.client.effects import Mark, by_name, happened, too_often, too_rarely


class Finding(Struct, frozen=True):
    """One thing that did not hold."""

    text: str
    """A sentence."""
    file: str = ""
    line: int = 0
    """Of the handler, where that is known."""
    times: int = 1
    """So many jobs, or deaths, showed it."""

    def __str__(self) -> str:
        place = f" ({self.file}:{self.line})" if self.file else ""
        more = f"; {self.times} times in all" if self.times > 1 else ""
        return f"{self.text}{place}{more}"


class Report(Struct):
    """The answer of a drill."""

    drill: str
    """kill, duplicate, reorder or load."""
    of: str
    """The tasks."""
    facts: dict[str, str] = field(default_factory=dict)
    """What was done, by name."""
    findings: list[Finding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """What the drill could not show, or did not try."""
    seconds: float = 0.0

    @property
    def held(self) -> bool:
        """Whether nothing was found."""
        return not self.findings

    def add(self, finding: Finding) -> None:
        """Keep it; one that is known already is counted."""
        for at, known in enumerate(self.findings):
            if (known.file, known.line, _gist(known.text)) == (
                finding.file,
                finding.line,
                _gist(finding.text),
            ):
                self.findings[at] = Finding(known.text, known.file, known.line, known.times + finding.times)
                return
        self.findings.append(finding)

    def lines(self) -> list[str]:
        """For people."""
        text = [f"{self.drill}: {self.of}, {self.seconds:.0f} s"]
        text += [f"  {name:<12} {said}" for name, said in self.facts.items()]
        text += [f"  note         {note}" for note in self.notes]
        # Not in the order in which they were found, which differs from run to run.
        text += sorted(f"BROKEN: {finding}" for finding in self.findings)
        if self.held:
            return [*text, "Everything held."]
        count = len(self.findings)
        return [*text, f"{'One thing' if count == 1 else f'{count} things'} did not hold."]

    def check(self) -> None:
        """AssertionError with all of it unless everything held: for tests."""
        if not self.held:
            raise AssertionError("\n".join(self.lines()))


def _gist(text: str) -> str:
    """What a finding is about, without which job it was and which death showed it."""
    return text.partition(": ")[0]


def shown(path: str) -> str:
    """A file as a person names it: from the working directory where it is below."""
    try:
        return str(Path(path).relative_to(Path.cwd()))
    except ValueError:
        return path


def repeated(marks: Iterable[Mark], why: str) -> list[Finding]:
    """Effects that happened more than once."""
    return [
        Finding(
            f"{too_often(times)}: {key}, {_attempts(times)}{why}",
            shown(times[0].file),
            times[0].line,
        )
        for (_, key), times in happened(marks).items()
        if len(times) > 1
    ]


def missing(marks: Iterable[Mark], usual: Mapping[str, Sequence[Mark]], why: str) -> list[Finding]:
    """Effects of an undisturbed run, by name, that happened fewer times here although the job has ended."""
    here = by_name(marks)
    return [
        Finding(
            f"{too_rarely(whole[0])}: {why}, and the job ended without it",
            shown(whole[0].file),
            whole[0].line,
        )
        for name, whole in usual.items()
        if len(here.get(name, ())) < len(whole)
    ]


def _attempts(times: Sequence[Mark]) -> str:
    numbers = list(dict.fromkeys(str(one.attempt) for one in times))
    return f"in attempts {' and '.join(numbers)}; " if len(numbers) > 1 else ""
