"""The pytest plugin: `duly_test`, and the two fixtures that a project may override.

Loaded by every pytest run of an environment that has duly, and does nothing until a test asks for `duly_test`.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from duly.app import App
    from duly.testing.kit import DulyTest


@pytest.fixture
def duly_app(pytestconfig: pytest.Config) -> App:
    """The App under test: that of `[tool.duly] app`, else of DULY_APP. Override it to hand out another one."""
    from duly.app import App
    from duly.client.settings import resolve
    from duly.worker.source import load_app

    root = pytestconfig.rootpath
    reference = resolve({}, directory=root).app
    if reference is None:
        pytest.fail(
            'which App? Write app = "shop.background:jobs" under [tool.duly] in pyproject.toml, or a fixture duly_app '
            "that returns yours",
            pytrace=False,
        )
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))
    app = load_app(reference)
    if not isinstance(app, App):
        pytest.fail(f"{reference} is {type(app).__name__} and no App", pytrace=False)
    return app


@pytest.fixture
def duly_url(duly_app: App, tmp_path: Any) -> str:
    """Where the jobs of this test are. Override it with the database of your own tables to share transactions."""
    from duly.testing.place import own_url

    return own_url(duly_app.settings, tmp_path)


@pytest.fixture
def duly_test(duly_app: App, duly_url: str) -> Iterator[DulyTest]:
    """The App on an empty store of this test's own, with a clock that stands still."""
    from duly.testing.kit import standing

    with _no_forgotten_await(), standing(duly_app, duly_url) as kit:
        yield kit


@contextmanager
def _no_forgotten_await() -> Iterator[None]:
    """Fail a test that called aenqueue() and never awaited it: the job does not exist."""
    forgotten: list[str] = []
    hook = sys.unraisablehook

    def note(unraisable: Any) -> None:
        text = str(unraisable.exc_value)
        if "enqueue" in text and "never awaited" in text:
            forgotten.append(text)
        else:
            hook(unraisable)

    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=r"coroutine '.*enqueue.*' was never awaited")
        sys.unraisablehook = note
        try:
            yield
        finally:
            sys.unraisablehook = hook
    if forgotten:
        pytest.fail(f"{forgotten[0]}: the job was not stored", pytrace=False)
