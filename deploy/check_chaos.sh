#!/bin/bash
# Puts 200 random faults on farms of daemons, and checks after each that no trial is lost or there
# twice.
#
#   deploy/check_chaos.sh KILN [FOLDER] [OPTION...]    FOLDER for the farms: a new one in /tmp
#
# As root, in namespaces of its own: besides kills, stops and bad connections it takes a cable
# between two boxes down, fills the disk of the database, and sets the clocks of daemons. Workers
# that lie join the farms. Needs python3 with python3-grpcio and python3-protobuf,
# protobuf-compiler, protobuf-compiler-grpc, iproute2, openssl, and for clocks a C compiler and a
# KILN that is not static. Takes about half an hour. Options are those of tests/chaos/chaos.py:
# --seed, --faults, --shapes, --report.
set -euo pipefail
(($# >= 1)) || { sed -n '2,10s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 2; }
here=$(realpath "$(dirname "${BASH_SOURCE[0]}")/..")
kiln=$(realpath "$1")
shift
folder=/tmp
if (($# > 0)) && [[ $1 != --* ]]; then folder=$(realpath "$1"); shift; fi
[[ $(id -u) == 0 ]] || { echo "check_chaos: expected root, for disks and network namespaces" >&2; exit 2; }

messages=$(mktemp -d)
trap 'rm -rf "$messages"' EXIT
"$here/python/make_protos.sh" "$messages"
touch "$messages/kiln/__init__.py"
clock=()
if ldd "$kiln" > /dev/null 2>&1 &&
  cc -O2 -Wall -Werror -shared -fPIC -o "$messages/clock_offset.so" "$here/tests/chaos/clock_offset.c"; then
  clock=(--clock "$messages/clock_offset.so")
else
  echo "no clock is set: there is no C compiler, or $kiln is static"
fi
# With a process namespace of its own nothing outlives the check.
unshare --mount --net --pid --mount-proc --fork --kill-child \
  sh -c 'ip link set lo up && exec "$@"' sh \
  /usr/bin/python3 -B "$here/tests/chaos/chaos.py" "$kiln" --faults 200 --per-farm 20 \
  --shapes plain,boxes,keys,single,farm --folder "$folder" --liar "$messages" "${clock[@]}" "$@"
