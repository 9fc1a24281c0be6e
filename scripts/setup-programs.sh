#!/usr/bin/env bash
# Installs programs that only some targets need, from Debian's packages of the same names: setup-programs.sh chromium wrk
# Safe to repeat, and silent when all is there.
set -euo pipefail
cd "$(dirname "$0")/.."

. scripts/apt.sh

for program in "$@"; do
    command -v "$program" >/dev/null || if_possible apt_install "$program"
done
