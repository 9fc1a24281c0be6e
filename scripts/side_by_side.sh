#!/usr/bin/env bash
# Runs targets of the Makefile at one time and prints what each said once it has ended: they wait more than they compute.
set -euo pipefail
cd "$(dirname "$0")/.."
said=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$said"' EXIT
started=()
for target in "$@"; do
	make --no-print-directory "$target" >"$said/$target" 2>&1 &
	started+=("$!")
done
failed=()
for position in "${!started[@]}"; do
	target=${@:position+1:1}
	wait "${started[$position]}" || failed+=("$target")
	cat "$said/$target"
done
if ((${#failed[@]})); then
	echo "failed: ${failed[*]}" >&2
	exit 1
fi
