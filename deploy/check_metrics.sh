#!/bin/bash
# usage: deploy/check_metrics.sh [KILN]
# Checks the metrics of a farm with Debian's Prometheus, which is unpacked into a folder of its own
# and runs as nobody: promtool reads what every daemon shows, the rules and the configuration;
# Prometheus scrapes a farm on the null target over TLS, answers every expression of the dashboard
# and the alerts, and three alerts fire: a runner falls silent, a job has no device, the database's
# disk fills. It takes about a minute, and needs root, for a disk in memory. KILN: a kiln that
# was built; otherwise bazel builds one.
set -euo pipefail
if [[ ${1:-} == --help || ${1:-} == -h ]]; then
  sed -n '2,8s/^# //p' "${BASH_SOURCE[0]}"
  exit 0
fi
kiln=${1:-}
[[ -z $kiln ]] || kiln=$(realpath -e "$kiln")
cd "$(dirname "${BASH_SOURCE[0]}")/.."
if [[ -z $kiln ]]; then
  bazel build //client/cli:kiln
  kiln=$PWD/bazel-bin/client/cli/kiln
fi
work=$(mktemp -d /tmp/kiln-check-metrics.XXXXXX)
finish() {
  mountpoint -q "$work/disk" && umount "$work/disk"
  rm -rf "$work"
}
trap finish EXIT
chmod 755 "$work"
mkdir "$work/debian" "$work/disk"
chmod 777 "$work/debian"
(cd "$work/debian" && apt-get -q download prometheus >/dev/null && dpkg-deb -x prometheus_*.deb .)
mount -t tmpfs -o size=512m kiln-check-metrics "$work/disk"
/usr/bin/python3 -B tests/metrics/prometheus.py "$kiln" "$work/debian/usr/bin" "$work"
