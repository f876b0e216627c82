#!/bin/bash
# usage: deploy/check_slurm.sh [KILN]
# Checks `kiln fleet slurm` on a real Slurm: Debian's slurmctld, slurmd and munged run as nobody on
# this machine, with six devices that are only counted. A job makes the fleet grow from 0 to 4
# runners of the CPU; one of them is cancelled and one requeued meanwhile; the fleet shrinks to 0
# afterwards. Every trial must be in the database once, and none may have failed. Then a job wants
# runners again; the fleet is killed and started again, and ends by SIGTERM while they work. Prints
# the times of growing and shrinking. It takes about ten minutes, and needs root, slurm-wlm and
# munge. Namespaces hold all processes, so that none outlives the check. KILN: a kiln that was
# built; otherwise bazel builds one.
set -euo pipefail
if [[ ${1:-} == --help || ${1:-} == -h ]]; then
  sed -n '2,11s/^# //p' "${BASH_SOURCE[0]}"
  exit 0
fi
kiln=${1:-}
[[ -z $kiln ]] || kiln=$(realpath -e "$kiln")
cd "$(dirname "${BASH_SOURCE[0]}")/.."
[[ $(id -u) == 0 ]] || { echo "check_slurm: expected root, for namespaces" >&2; exit 2; }
for program in slurmctld slurmd munged sbatch; do
  command -v "$program" >/dev/null || {
    echo "check_slurm: no $program; apt-get install slurm-wlm munge" >&2
    exit 2
  }
done
if [[ -z $kiln ]]; then
  bazel build //client/cli:kiln
  kiln=$PWD/bazel-bin/client/cli/kiln
fi
work=$(mktemp -d /tmp/kiln-check-slurm.XXXXXX)
trap 'rm -rf "$work"' EXIT
install -m 755 "$kiln" "$work/kiln"
install -m 644 tests/slurm/*.py "$work/"
chown -R nobody: "$work"
chmod 755 "$work"
# A namespace of networks has the ports that it wants, and an address beyond the loopback, without
# which Slurm finds no address to listen on. One of processes ends all of them.
printf '127.0.0.1 localhost\n10.99.0.1 login %s\n' "$(hostname)" >"$work/hosts"
unshare --mount --net --pid --mount-proc --fork --kill-child \
  sh -c 'ip link set lo up && ip address add 10.99.0.1/32 dev lo && mount --bind "$1/hosts" /etc/hosts &&
    cd "$1" && exec runuser -u nobody -- \
    env HOME="$1" USER=nobody /usr/bin/python3 -B "$1/fleet.py" "$1/kiln" "$1"' sh "$work"
