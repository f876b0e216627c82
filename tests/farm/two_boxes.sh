#!/bin/bash
# Two boxes, as two network namespaces with a cable between: from nothing to a tuned job, as a new
# user types it, with the packets of the cable.
#
#   tests/farm/two_boxes.sh KILN [DEVICE]     DEVICE of the runner: null (default), cpu, cuda
#
# Prints each command with its seconds. Exit status 1: a command failed, or the cable carried a
# private key's or the computation's text; a run in plain text shows that the text would be found.
# Skips itself with a sentence where the kernel gives no namespaces.
set -euo pipefail
kiln=$(realpath "$1") device=${2:-null}
capture=$(realpath "$(dirname "$0")")/capture.py

skip() { echo "skipped: $*"; exit 0; }
fail() {
  local log
  echo "two_boxes: $*" >&2
  for log in "$work"/*/*.log; do tail -n 5 "$log" >&2; done
  exit 1
}

command -v ip > /dev/null || skip "there is no ip command (apt-get install iproute2)"
if [[ ${KILN_IN_NAMESPACE:-} != 1 ]]; then
  unshare -rmn true 2> /dev/null || skip "this kernel gives no network namespace to this user"
  KILN_IN_NAMESPACE=1 exec unshare -rmn --fork --kill-child "$0" "$@"
fi

# box2 is a namespace below this one, which is box1.
work=$(mktemp -d)
unshare -n sleep 3600 & other=$!
pids=($other)
trap 'kill "${pids[@]}" 2> /dev/null || true; wait; rm -rf "$work"' EXIT
until [[ $(readlink "/proc/$other/ns/net") != $(readlink /proc/self/ns/net) ]]; do sleep 0.02; done
box2() { nsenter -t "$other" -n "$@"; }
ip link add cable1 type veth peer name cable2 2> /dev/null || skip "this kernel has no veth"
ip link set cable2 netns "$other"
ip link set lo up; ip address add 10.77.0.1/24 dev cable1; ip link set cable1 up
box2 ip link set lo up; box2 ip address add 10.77.0.2/24 dev cable2; box2 ip link set cable2 up

typed=0 start=0
# Runs one command line, as somebody types it on a box. Daemons go on.
type_on() {
  local box=$1 line=$2 begin
  begin=$(date +%s.%N)
  typed=$((typed + 1))
  case $box in
    box2) (cd "$work/box2" && box2 bash -c "$line") ;;
    *) (cd "$work/$box" && bash -c "$line") ;;
  esac || fail "on $box: $line"
  # The line without what the script adds to it: logs and process ids.
  line=$(sed -E 's/ 2?>+ [a-z]+\.log( 2>&1)?//g; s/ & echo \$! > [a-z]\.pid;?/ \&/g' <<< "$line")
  printf '%6.2f s  %s$ %s\n' "$(bc <<< "$(date +%s.%N) - $begin")" "$box" "$line"
}
# Ends the daemons and the capture.
end_all() {
  local pid
  kill "${pids[@]:1}" 2> /dev/null || true
  for pid in "${pids[@]:1}"; do
    # A child of this shell stays as a zombie until it is waited for.
    wait "$pid" 2> /dev/null || true
    for _ in $(seq 500); do [[ -d /proc/$pid ]] || break; sleep 0.02; done
  done
  pids=($other)
}
collect() { local file; for file in "$work"/*/*.pid; do pids+=($(cat "$file")); done; }

# Starts a farm with these flags of its daemons and of the client, and tunes.
tune_with() {
  local tracker=$1 scheduler=$2 builder=$3 runner=$4 you=$5
  local to=10.77.0.1:9190
  type_on box1 "kiln tracker --listen 10.77.0.1:9190 $tracker 2>> t.log & echo \$! > t.pid; \
kiln scheduler --listen 10.77.0.1:9290 --tracker $to $scheduler 2>> s.log & echo \$! > s.pid"
  local on_box2="--listen 10.77.0.2:0 --tracker $to"
  type_on box2 "kiln builder $on_box2 $builder 2>> b.log & echo \$! > b.pid; \
kiln runner $on_box2 --device $device $runner 2>> r.log & echo \$! > r.pid"
  collect
  local target=llvm; [[ $device != cpu ]] && target=$device
  # Seen from box2: the scheduler's calls go over the cable, too.
  type_on box2 "kiln tune matmul --args 96,64,32 --target $target --trials 6 \
--scheduler 10.77.0.1:9290 $you > tune.log 2>&1"
}

export PATH="$work/bin:$PATH"
mkdir -p "$work/bin" "$work/box1" "$work/box2"
ln -s "$kiln" "$work/bin/kiln"
unset KILN_KEYS KILN_SECRET_FILE KILN_SCHEDULER KILN_TRACKER KILN_DB

record() {
  python3 -B "$capture" cable1 "$1" > "$work/ready" & pids+=($!)
  until grep -q capturing "$work/ready"; do sleep 0.02; done
}

# The text of a computation and the names of calls, as plain text carries them.
words=(matmul placeholder kiln.v1.Scheduler/Submit kiln-secret "PRIVATE KEY")
record "$work/secured.bytes"
start=$(date +%s.%N)
type_on box1 "kiln keys init > init.log"
type_on box1 "kiln keys issue box1 box2 --role work > issue.log"
type_on box1 "kiln keys issue alice --role submit > issue.log"
type_on box1 "cp -rp farm-keys/box2 farm-keys/alice ../box2/"
tune_with "--keys farm-keys/box1" "--keys farm-keys/box1" "--keys box2" "--keys box2" "--keys alice"
seconds=$(bc <<< "$(date +%s.%N) - $start")
printf '%d commands, %.1f s from nothing to a tuned job\n' "$typed" "$seconds"
end_all
mapfile -t key < <(
  grep -hv -- '-----' "$work"/box*/{,farm-keys/}*/identity.pem | grep -E '^M' | cut -c1-40
)
if python3 -B "$capture" --find "$work/secured.bytes" "${words[@]}" "${key[@]}"; then
  fail "the cable carried these words in the clear"
fi
[[ $(stat -c %s "$work/secured.bytes") -gt 10000 ]] || fail "nothing was captured"

echo "The same farm in plain text, as a check of the capture:"
rm -f "$work"/*/*.pid "$work"/box1/kiln.db*
record "$work/plain.bytes"
tune_with --insecure --insecure --insecure --insecure "" > /dev/null
end_all
python3 -B "$capture" --find "$work/plain.bytes" matmul kiln.v1.Scheduler/Submit ||
  fail "the capture does not find what plain text carries"
