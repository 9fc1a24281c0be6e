#!/usr/bin/env bash
# Runs the suite of the release before the newest migration against the schema that this tree makes, then workers of both
# releases on one database: old workers and producers go on working during a deploy. Usage: scripts/previous_release.sh [pytest arguments]
set -euo pipefail
cd "$(dirname "$0")/.."

# The last commit on which migration 3 was the newest.
previous=${PREVIOUS:-15fdc34}
here=$PWD
place=$(mktemp -d)
trap 'git -C "$here" worktree remove --force "$place/old" 2>/dev/null; rm -rf "$place"' EXIT

if ! git cat-file -e "$previous^{commit}" 2>/dev/null; then
    echo "commit $previous is not in this clone: fetch the whole history (git fetch --unshallow)" >&2
    exit 1
fi
git worktree add --quiet --detach "$place/old" "$previous"
# The old code applies whatever migrations lie in its folders: the new ones are laid beside its own. A function that
# is there already stays as it was, for a migration that was applied once never changes.
for store in sqlite postgres; do
    for folder in migrations functions; do
        [ -d "src/duly/stores/$store/$folder" ] || continue
        cp --no-clobber "src/duly/stores/$store/$folder"/*.sql "$place/old/src/duly/stores/$store/$folder/"
    done
done
cd "$place/old"
# Conformance and stores: what touches the schema, but for the tests of the migrations of its own time.
PYTHONPATH="$place/old/src" "$here/.venv/bin/python" -m pytest -q -p no:cacheprovider -p no:duly -n "${JOBS:-2}" \
    --deselect tests/stores/sqlite/test_schema.py::test_migrating_names_what_it_did_and_repeats_nothing \
    --ignore-glob 'tests/stores/*/test_migration.py' \
    tests/conformance tests/stores "$@"
# Both fleets on one database.
cd "$here"
PYTHONPATH="$here/src:$here" "$here/.venv/bin/python" scripts/mixed_fleet.py "$place/old/src"
