"""From `MODULE[:NAME]` to an App: importing the user's code, and saying plainly what is wrong with it.

Knows nothing of commands and stores.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import traceback
from pathlib import Path
from types import ModuleType

from duly.app import App
from duly.core.errors import DulyError, UsageError

MISSING = (
    "which App? Give MODULE[:NAME] as argument or with -a, set DULY_APP, or write "
    'app = "shop.background:jobs" under [tool.duly] in pyproject.toml'
)


def load_app(reference: str) -> App:
    """Import the App that a reference means. UsageError says what to write instead."""
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    module_name, _, name = reference.partition(":")
    if not module_name or "/" in module_name or module_name.endswith(".py"):
        dotted = module_name.removesuffix(".py").strip("./").replace("/", ".") or "shop.background"
        raise UsageError(f"{reference!r} is no module; write {dotted}{':' + name if name else ''}")
    module = _import(module_name)
    return _named(module, name) if name else _only(module)


def _import(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise _failed(name, error) from error
        raise UsageError(
            f"there is no module {error.name!r}, looked for in {Path.cwd()} and the installed packages; "
            "start duly in the folder that holds it, or check the spelling"
        ) from error
    except DulyError:
        raise
    except Exception as error:
        raise _failed(name, error) from error


def _failed(module: str, error: Exception) -> UsageError:
    last = traceback.extract_tb(error.__traceback__)[-1]
    return UsageError(
        f"importing {module} failed at {last.filename}:{last.lineno}: {type(error).__name__}: {error}; "
        f"`python -c 'import {module}'` shows all of it"
    )


def _named(module: ModuleType, name: str) -> App:
    value: object = module
    for part in name.split("."):
        if not hasattr(value, part):
            apps = sorted(found for found, item in vars(module).items() if isinstance(item, App))
            known = f"; it holds {', '.join(apps)}" if apps else ""
            raise UsageError(f"{module.__name__} has no {name!r}{known}")
        value = getattr(value, part)
    if callable(value) and not isinstance(value, App):
        value = value()
    if not isinstance(value, App):
        raise UsageError(
            f"{module.__name__}:{name} is {type(value).__name__}, neither an App nor a function that returns one"
        )
    return value


def _only(module: ModuleType) -> App:
    named = {name: value for name, value in vars(module).items() if isinstance(value, App)}
    apps = {id(app): app for app in named.values()}
    if len(apps) == 1:
        return next(iter(apps.values()))
    if apps:
        choices = " or ".join(f"{module.__name__}:{name}" for name in sorted(named))
        raise UsageError(f"{module.__name__} holds {len(apps)} Apps; write {choices}")
    raise UsageError(
        f"{module.__name__} holds no App; write `jobs = App()` there, or MODULE:NAME for a function that returns one"
    )
