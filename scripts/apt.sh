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

apt_install() {
    if ! command -v apt-get >/dev/null; then
        echo "This machine has no apt-get. Install what Debian calls: $*" >&2
        return 1
    fi
    echo "installing Debian packages: $*"
    as_root apt-get -qq update
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends "$@" >/dev/null
}
