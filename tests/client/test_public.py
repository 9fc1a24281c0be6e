"""The names users import, and what each of them promises in its own words."""

import inspect
import re
from typing import Any

import duly
from duly.client.inspect import Inspect
from duly.client.operate import Operate


def test_all_names_are_sorted_and_there() -> None:
    names = duly.__all__

    # Constants first, as the linter has it.
    assert names == sorted(names, key=lambda name: (not name.isupper(), name))
    assert len(set(names)) == len(names)
    assert all(hasattr(duly, name) for name in names)


def test_everything_public_is_exported() -> None:
    public = {
        name for name, value in vars(duly).items() if not name.startswith("_") and not inspect.ismodule(value)
    }

    assert public == set(duly.__all__)


def test_every_public_callable_says_what_it_does() -> None:
    silent = []
    for name in duly.__all__:
        value: Any = getattr(duly, name)
        if not (value.__doc__ or "").strip():
            silent.append(name)
        for method, member in vars(value).items():
            if (
                inspect.isfunction(member)
                and not method.startswith("_")
                and not (member.__doc__ or "").strip()
            ):
                silent.append(f"{name}.{method}")

    assert silent == []


def test_whatever_blocks_has_an_async_twin() -> None:
    for surface in (Inspect, Operate):
        methods = {
            name for name, value in vars(surface).items() if inspect.isfunction(value) and name[0] != "_"
        }
        twins = {name for name in methods if inspect.iscoroutinefunction(getattr(surface, name))}
        blocking = methods - twins - {"actor"}

        assert twins == {f"a{name}" for name in blocking}
        for name in blocking:
            assert inspect.signature(getattr(surface, name)) == inspect.signature(
                getattr(surface, f"a{name}")
            )


def test_help_shows_the_options_of_task_and_using() -> None:
    for method, options in (
        (
            duly.App.task,
            {"unique", "queue", "timeout", "attempts", "backoff", "permanent", "isolation", "ack"},
        ),
        (
            duly.Task.using,
            {
                "then",
                "on_dead",
                "unique_key",
                "idempotency_key",
                "version",
                "app",
                "connection",
                "delay",
                "run_at",
                "priority",
                "tags",
            },
        ),
    ):
        documented = set(re.findall(r"^ +(\w+): ", method.__doc__ or "", re.MULTILINE))
        parameters = {name for name in inspect.signature(method).parameters if name not in {"self", "fn"}}

        assert options <= parameters
        assert documented == parameters
