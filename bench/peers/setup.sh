#!/usr/bin/env bash
# Installs the servers of the peers from Debian's packages: Redis, RabbitMQ, beanstalkd. Safe to repeat, and silent when
# all is there. The services that their packages start are stopped: a run starts servers of its own.
set -euo pipefail
cd "$(dirname "$0")/../.."

. scripts/apt.sh

missing=()
for pair in redis-server:/usr/bin/redis-server rabbitmq-server:/usr/sbin/rabbitmq-server beanstalkd:/usr/bin/beanstalkd; do
    [ -x "${pair#*:}" ] || missing+=("${pair%%:*}")
done
if [ "${#missing[@]}" -gt 0 ]; then
    if ! apt_install "${missing[@]}"; then
        echo "COULD NOT install ${missing[*]}: the peers on them will be left out." >&2
    elif [ -d /run/systemd/system ]; then
        as_root systemctl disable --quiet --now "${missing[@]}"
    fi
fi
