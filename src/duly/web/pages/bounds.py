"""Bounds as people type them into a form: numbers, rates and spans, left out or taken away. Knows no page."""

from __future__ import annotations

from typing import Literal

from duly.core.errors import UsageError
from duly.web.pages.acts import Form

Bound = int | Literal["none"] | None


def read_bound(form: Form, name: str) -> Bound:
    """A whole number, "none", or nothing at all. UsageError for anything else."""
    text = form.text(name)
    if not text:
        return None
    return "none" if text.lower() == "none" else form.number(name)


def read_number(form: Form, name: str) -> int | None:
    """A whole number or nothing. UsageError for anything else."""
    found = read_bound(form, name)
    if found == "none":
        raise UsageError(f"{name}: leave it empty for no bound")
    return found


def read_rate(form: Form, name: str = "rate") -> str | None:
    """As it was typed; "none" takes the bound away."""
    text = form.text(name)
    return "none" if text.lower() == "none" else text or None


def read_lasting(form: Form) -> str:
    """For how long. UsageError where nothing was given."""
    text = form.text("lasting")
    if not text:
        raise UsageError("say for how long, such as 2h: what nobody remembers ends by itself")
    return text
