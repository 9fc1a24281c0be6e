#!/usr/bin/env bash
# Installs real camera pictures (Debian's mate-backgrounds), so that CI's demo also works on what cameras write.
set -euo pipefail
cd "$(dirname "$0")/.."

. scripts/apt.sh

if [ ! -d /usr/share/backgrounds/mate ]; then
    if_possible apt_install mate-backgrounds
fi
