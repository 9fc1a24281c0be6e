"""The user's App as the worker sees it: what it reads of it, and how a process imports it by reference.

Names no class of the layer above: an App is what has these attributes.
"""

import importlib
import traceback
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any, Protocol, TypeGuard

from duly.client.client import Client
from duly.client.queue import Queue
from duly.client.settings import Settings
from duly.client.task import Task
from duly.core.errors import DulyError, UsageError
from duly.stores.protocol import Store


class AppLike(Protocol):
    """An App."""

    client: Client

    @property
    def around_functions(self) -> Sequence[Any]: ...

    @property
    def lifespan_functions(self) -> Sequence[Any]: ...

    @property
    def tasks(self) -> Mapping[str, Task[..., Any]]: ...

    @property
    def queues(self) -> Mapping[str, Queue]: ...

    @property
    def settings(self) -> Settings: ...

    @property
    def store(self) -> Store: ...

    def load(self) -> None: ...

    def close(self) -> None: ...


def load_app(reference: str) -> AppLike:
    """Import the App that `MODULE[:NAME]` means. UsageError says what to write instead."""
    module_name, _, name = reference.partition(":")
    module = _import(module_name)
    found = _named(module, name) if name else _only(module)
    found.load()
    return found


def _import(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except DulyError:
        raise
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        raise UsageError(
            f"importing {name} failed at {last.filename}:{last.lineno}: {type(error).__name__}: {error}; "
            f"`python -c 'import {name}'` shows all of it"
        ) from error


def _named(module: ModuleType, name: str) -> AppLike:
    value: object = module
    for part in name.split("."):
        if not hasattr(value, part):
            raise UsageError(f"{module.__name__} has no {name!r}")
        value = getattr(value, part)
    if callable(value) and not _is_app(value):
        value = value()
    if not _is_app(value):
        raise UsageError(
            f"{module.__name__}:{name} is {type(value).__name__}, neither an App nor a function that returns one"
        )
    return value


def _only(module: ModuleType) -> AppLike:
    apps = {
        id(value): value
        for value in vars(module).values()
        if isinstance(getattr(value, "client", None), Client)
    }
    if len(apps) != 1:
        raise UsageError(f"{module.__name__} holds {len(apps)} Apps; write {module.__name__}:NAME")
    found = next(iter(apps.values()))
    if not _is_app(found):
        raise UsageError(f"{module.__name__} holds no App")
    return found


def _is_app(value: object) -> TypeGuard[AppLike]:
    # Not by isinstance: Python 3.11 reads each attribute of the protocol, and reading `store` opens it.
    return isinstance(getattr(value, "client", None), Client)
