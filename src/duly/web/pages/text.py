"""How values are written on a page: text of jobs made harmless, times, spans, counts and rates in words.

Pure, but for markupsafe; whatever comes from a job is escaped here and in no other way.
"""

from __future__ import annotations

import unicodedata
from datetime import UTC, datetime, timedelta
from typing import Final

from markupsafe import Markup, escape

NONE: Final = "\N{EN DASH}"
MINUS: Final = "\N{MINUS SIGN}"
LINE: Final = 160
"""Characters of one line of a list."""
_KEPT: Final = frozenset("\u200c\u200d")  # parts of letters in several scripts, and of emoji
_ARROWS: Final = (("↗", "rising"), ("↘", "falling"), ("→", "level"))


def shown(value: object, most: int = LINE) -> Markup:
    """Text of whoever wrote it, on one line: isolated, controls made visible, cut where it gets long."""
    return _isolated(_one_line(str(value)[: most + 1]), most)


def block(value: object, most: int = 20_000) -> Markup:
    """The same, with its lines."""
    return _isolated(str(value)[: most + 1].replace("\r\n", "\n"), most)


def prose(value: object, most: int = 600) -> Markup:
    """A sentence of duly's own, which may hold names of others: what stands between backticks is code."""
    parts = str(value)[:most].split("`")
    if len(parts) % 2 == 0:
        return shown(value, most)
    told = [
        Markup("<code>{}</code>").format(shown(part, most)) if index % 2 else shown(part, most)
        for index, part in enumerate(parts)
        if part
    ]
    return Markup("<bdi>{}</bdi>").format(Markup().join(told))


def plain(value: object, most: int = LINE) -> str:
    """Such text where no markup may stand, as in a title: controls are written out."""
    text = _one_line(str(value)[: most + 1])
    said = "".join(_named(character) if _hidden(character) else character for character in text[:most])
    return said + ("…" if len(text) > most else "")


def _one_line(text: str) -> str:
    return text.replace("\n", "⏎").replace("\t", " ")


def _isolated(text: str, most: int) -> Markup:
    parts: list[Markup] = []
    plain: list[str] = []
    for character in text[:most]:
        if not _hidden(character):
            plain.append(character)
            continue
        parts.append(escape("".join(plain)))
        plain.clear()
        parts.append(Markup('<span class="control">{}</span>').format(_named(character)))
    parts.append(escape("".join(plain)))
    more = Markup('<span class="cut" title="cut here">…</span>') if len(text) > most else Markup()
    return Markup("<bdi>{}{}</bdi>").format(Markup().join(parts), more)


def _hidden(character: str) -> bool:
    """Whether a reader would not see it, or would see others differently because of it."""
    if character.isascii():
        return not character.isprintable() and character not in {"\n", "\t"}
    kind = unicodedata.category(character)
    return (kind[0] == "C" and character not in _KEPT) or kind in {"Zl", "Zp"}


def _named(character: str) -> str:
    return f"\\u{ord(character):04x}" if ord(character) < 0x10000 else f"\\U{ord(character):08x}"


def number(value: float | None, *, estimated: bool = False) -> str:
    """With its thousands apart; "~" before an estimate."""
    return NONE if value is None else f"{'~' if estimated else ''}{value:,.0f}"


def rate(per_second: float | None) -> str:
    """Per second, minute or hour, whichever reads as a number from 1."""
    if per_second is None:
        return NONE
    size = abs(per_second)
    if not size:
        return "0/s"
    value, unit = per_second, "s"
    if size < 1:
        value, unit = (per_second * 60, "min") if size * 60 >= 1 else (per_second * 3600, "h")
    return f"{value:,.0f}/{unit}" if abs(value) >= 10 else f"{value:.1f}".removesuffix(".0") + f"/{unit}"


def slope(per_second: float | None) -> Markup:
    """Where a depth is going, as an arrow that is read out as a word."""
    if per_second is None:
        return Markup('<span class="quiet">{}</span>').format(NONE)
    minute = per_second * 60
    arrow, word = _ARROWS[0 if minute >= 0.5 else 1 if minute <= -0.5 else 2]
    return Markup(
        '<span class="slope {}"><span aria-hidden="true">{}</span><span class="spoken">{}</span> {}</span>'
    ).format(
        word,
        arrow,
        word,
        "" if word == "level" else ("+" if per_second > 0 else MINUS) + rate(abs(per_second)),
    )


def age(span: timedelta | float | None) -> str:
    """A span in its largest units: "3 s", "2 min 10 s", "41 min", "5 h", "12 d"."""
    if span is None:
        return NONE
    seconds = span.total_seconds() if isinstance(span, timedelta) else float(span)
    if seconds < 0:
        return MINUS + age(-seconds)
    if seconds < 10:
        return (
            f"{seconds:.1f}".removesuffix(".0") + " s"
            if seconds >= 1 or not seconds
            else f"{seconds * 1000:.0f} ms"
        )
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 600:
        return f"{whole // 60} min" + (f" {whole % 60} s" if whole % 60 else "")
    if whole < 5400:
        return f"{round(whole / 60)} min"
    if whole < 172_800:
        hours, minutes = divmod(round(whole / 60), 60)
        return f"{hours} h" + (f" {minutes} min" if minutes and hours < 10 else "")
    return f"{round(whole / 86_400):,} d"


def moment(at: datetime | None) -> Markup:
    """A moment in UTC, to the second."""
    if at is None:
        return escape(NONE)
    utc = at.astimezone(UTC)
    return Markup('<time datetime="{}">{}</time>').format(_iso(utc), f"{utc:%Y-%m-%d %H:%M:%S}")


def since(at: datetime | None, now: datetime) -> Markup:
    """A moment as seen from now, with the moment itself on it: "3 s ago", "in 5 min"."""
    if at is None:
        return escape(NONE)
    utc, span = at.astimezone(UTC), now - at
    if abs(span) < timedelta(seconds=1):
        words = "now"
    else:
        words = f"in {age(-span)}" if span < timedelta(0) else f"{age(span)} ago"
    return Markup('<time datetime="{}" title="{}">{}</time>').format(
        _iso(utc), f"{utc:%Y-%m-%d %H:%M:%S} UTC", words
    )


def _iso(utc: datetime) -> str:
    return f"{utc:%Y-%m-%dT%H:%M:%S.%f}"[:-3] + "Z"


def size(count: int) -> str:
    """A number of bytes."""
    if count < 1024:
        return f"{count} B"
    return f"{count / 1024:.0f} KiB" if count < 1024 * 1024 else f"{count / 1024 / 1024:.1f} MiB"


def points(values: list[float], width: int = 120, height: int = 28) -> str:
    """The points of a line through these values, for an SVG polyline of that size."""
    if not values:
        return ""
    top = max([*values, 0.0]) or 1.0
    step = width / max(1, len(values) - 1)
    return " ".join(
        f"{index * step:.1f},{height - 1 - (height - 2) * max(0.0, value) / top:.1f}"
        for index, value in enumerate(values)
    )
