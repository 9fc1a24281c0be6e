#!/usr/bin/env bash
# Installs the servers that the tests start: PostgreSQL 15 and PgBouncer from Debian's packages (PostgreSQL 18 comes
# as a wheel, with the development tools). Safe to repeat, and silent when all is there. Starts nothing and makes no cluster.
set -euo pipefail
cd "$(dirname "$0")/.."

. scripts/apt.sh

clusters=/etc/postgresql-common/createcluster.conf

install_postgresql() {
    # The server package makes and starts a cluster of its own unless this file says otherwise beforehand.
    if [ ! -e "$clusters" ]; then
        as_root mkdir -p "$(dirname "$clusters")" || return
        trap restore_clusters EXIT
        echo 'create_main_cluster = false' | as_root tee "$clusters" >/dev/null || return
    fi
    apt_install postgresql-15
}

restore_clusters() {
    as_root cp /usr/share/postgresql-common/createcluster.conf "$clusters" 2>/dev/null || as_root rm -f "$clusters"
    as_root rm -f "$clusters.ucf-dist"
}

if [ ! -x /usr/lib/postgresql/15/bin/initdb ]; then
    if_possible install_postgresql
fi

# For the tests behind a pooler, which start one of their own.
if [ ! -x /usr/sbin/pgbouncer ] && ! command -v pgbouncer >/dev/null; then
    if_possible apt_install pgbouncer
    # Nobody asked for the service that the package starts where there is systemd.
    if [ -d /run/systemd/system ]; then as_root systemctl disable --quiet --now pgbouncer; fi
fi
