"""Running the programs under examples/: imported as their users would, worked by a real `duly worker`."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

EXAMPLES = Path(__file__).parents[2] / "examples"


def load(folder: str, name: str) -> ModuleType:
    """The program, imported under its own name, so that its tasks and references are what they are in use."""
    sys.modules.pop(name, None)
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / folder / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def run(folder: str, *command: str, **environment: str) -> str:
    """A command in the folder of the program; what it printed. AssertionError when it fails."""
    done = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=EXAMPLES / folder,
        # Some shells export the width of their terminal.
        env={**os.environ, **environment, "COLUMNS": "160"},
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def work(folder: str, app: str, *flags: str, **environment: str) -> None:
    """Until nothing is ready."""
    run(folder, "duly.cli.main", "worker", app, "--until-idle", *flags, **environment)
