# shellcheck shell=bash
# Sourced by the setup scripts: installs Debian packages as root, or through sudo for an ordinary user.

as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        echo "Needs root once, and there is no sudo here. As root, run: $*" >&2
        return 1
    fi
}

# Another apt may be at work (unattended upgrades on a fresh machine): wait for it.
apt_get() {
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=180 "$@"
}

apt_install() {
    if ! command -v apt-get >/dev/null; then
        echo "This machine has no apt-get. Install what Debian calls: $*" >&2
        return 1
    fi
    echo "installing Debian packages: $*"
    apt_get update && apt_get install -y --no-install-recommends "$@" >/dev/null
}

# For what only some tests need: without it they skip, loudly. CI must have it.
if_possible() {
    if ! "$@"; then
        echo "COULD NOT $*: what needs it will be left out." >&2
        [ "${CI:-}" != true ]
    fi
}
