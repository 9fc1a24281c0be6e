#!/usr/bin/env bash
# Makes .venv and installs the package with its development tools into it. Safe to repeat.
# Takes things from Debian's packages and PyPI only. PYTHON chooses the interpreter (3.11 or later).
set -euo pipefail
cd "$(dirname "$0")/.."

python=${PYTHON:-python3}

. scripts/apt.sh

command -v "$python" >/dev/null || apt_install python3
if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
    echo "duly needs Python 3.11 or later, but '$python' is $("$python" -V 2>&1). Try: make PYTHON=python3.12 ..." >&2
    exit 1
fi

# Debian keeps ensurepip in a package of its own: without it `python3 -m venv` makes a half-built folder.
if [ ! -x .venv/bin/python ] || ! .venv/bin/python -m pip --version >/dev/null 2>&1; then
    if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
        apt_install "python$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')-venv"
    fi
    "$python" -m venv --clear .venv
fi

.venv/bin/python -m pip install --quiet --disable-pip-version-check \
    --constraint scripts/constraints.txt --editable '.[dev]'
touch .venv/.ready
