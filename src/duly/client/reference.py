"""How another process finds the App that this one holds: the module and the name it stands under.

Knows module names and files; starts nothing.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

from duly.core.errors import UsageError


def reference_of(app: object) -> str:
    """`MODULE:NAME` under which a child process finds this App: that of the script itself when it is `__main__`."""
    main = sys.modules.get("__main__")
    for name, module in list(sys.modules.items()):
        attribute = None if name == "__main__" else _attribute(module, app)
        if attribute is not None:
            return f"{name}:{attribute}"
    attribute = None if main is None else _attribute(main, app)
    if main is None or attribute is None:
        raise UsageError(
            "this App is in no module's variable, so that a worker process cannot import it; "
            "assign it at module level, as `jobs = App()`, or run `duly worker MODULE:FUNCTION`"
        )
    return f"{_own_name(main)}:{attribute}"


def _attribute(module: object, app: object) -> str | None:
    # Programs put stranger things than modules into sys.modules.
    names = getattr(module, "__dict__", {})
    return next((name for name, value in list(names.items()) if value is app), None)


def _own_name(main: ModuleType) -> str:
    """What the script is called when it is imported: `python -m shop.jobs` and `python jobs.py` alike."""
    spec = getattr(main, "__spec__", None)
    if spec is not None and spec.name:
        return str(spec.name.removesuffix(".__main__"))
    file = getattr(main, "__file__", None)
    if file is None:
        raise UsageError("a worker process cannot import what was typed at a prompt; put the App in a file")
    return Path(file).stem
