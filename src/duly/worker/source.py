"""The user's App as the worker sees it: what it reads of it, and how a process imports it by reference.

Names no class of the layer above: an App is what has these attributes.
"""

import importlib
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
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
    """Import the App that `MODULE[:NAME]` means, and all it includes. UsageError says what to write instead."""
    module_name, _, name = reference.partition(":")
    if not module_name or "/" in module_name or module_name.endswith(".py"):
        dotted = module_name.removesuffix(".py").strip("./").replace("/", ".") or "shop.background"
        raise UsageError(f"{reference!r} is no module; write {dotted}{':' + name if name else ''}")
    module = import_module(module_name)
    found = _named(module, name) if name else _only(module)
    if not found.client.main:
        # Its handlers would enqueue into the other store, where their attempt is not known.
        raise UsageError(f"{reference!r} is made by at(url): name the App itself, and the store with --url")
    found.load()
    return found


def import_module(name: str) -> ModuleType:
    """The user's module. UsageError says what failed, and where."""
    try:
        return importlib.import_module(name)
    except DulyError:
        raise
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise _failed(f"importing {name}", name, error) from error
        raise UsageError(
            f"there is no module {error.name!r}, looked for in {Path.cwd()} and the installed packages; "
            "start duly in the folder that holds it, or check the spelling"
        ) from error
    except Exception as error:
        raise _failed(f"importing {name}", name, error) from error


def _failed(what: str, module: str, error: Exception) -> UsageError:
    last = traceback.extract_tb(error.__traceback__)[-1]
    return UsageError(
        f"{what} failed at {last.filename}:{last.lineno}: {type(error).__name__}: {error}; "
        f"`python -c 'import {module}'` shows all of it"
    )


def _named(module: ModuleType, name: str) -> AppLike:
    value: object = module
    for part in name.split("."):
        if not hasattr(value, part):
            apps = sorted(_apps(module))
            raise UsageError(
                f"{module.__name__} has no {name!r}" + (f"; it holds {', '.join(apps)}" if apps else "")
            )
        value = getattr(value, part)
    if callable(value) and not _is_app(value):
        try:
            value = value()
        except DulyError:
            raise
        except Exception as error:
            raise _failed(f"{module.__name__}:{name}()", module.__name__, error) from error
    if not _is_app(value):
        raise UsageError(
            f"{module.__name__}:{name} is {type(value).__name__}, neither an App nor a function that returns one"
        )
    return value


def _only(module: ModuleType) -> AppLike:
    named = _apps(module)
    apps = {id(app): app for app in named.values()}
    if len(apps) == 1:
        return next(iter(apps.values()))
    if apps:
        choices = " or ".join(f"{module.__name__}:{name}" for name in sorted(named))
        raise UsageError(f"{module.__name__} holds {len(apps)} Apps; write {choices}")
    raise UsageError(
        f"{module.__name__} holds no App; write `jobs = App()` there, or MODULE:NAME for a function that returns one"
    )


def _apps(module: ModuleType) -> dict[str, AppLike]:
    named = {name: value for name, value in vars(module).items() if _is_app(value)}
    return {name: app for name, app in named.items() if app.client.main}


def _is_app(value: object) -> TypeGuard[AppLike]:
    # Not by isinstance: Python 3.11 reads each attribute of the protocol, and reading `store` opens it.
    # A resource has a client, too.
    return isinstance(getattr(value, "client", None), Client) and hasattr(type(value), "load")
