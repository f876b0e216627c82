#!/bin/bash
# Two boxes, as two network namespaces with a cable between: from nothing to a secured farm of both
# and its first job, by the lines that `kiln keys init` prints, with the packets of the cable.
#
#   tests/farm/two_boxes.sh KILN [DEVICE]     DEVICE of the runners: null (default), cpu, cuda
#
# Prints each line with its seconds, and their number. The script copies where a user types scp,
# sends the runner to the background, and adds --device, --target and --trials; the rest is typed as
# it was printed. Exit status 1: a command failed, there were more than six, or the cable carried a
# private key's or the computation's text; a run in plain text shows that the text would be found.
# Skips itself with a sentence where the kernel gives no namespaces.
set -euo pipefail
kiln=$(realpath "$1") device=${2:-null}
capture=$(realpath "$(dirname "$0")")/capture.py
most=6

skip() { echo "skipped: $*"; exit 0; }
fail() {
  local log
  echo "two_boxes: $*" >&2
  for log in "$work"/*/*.log "$farm"/*.log; do
    [[ -s $log ]] && { echo "$log:"; tail -n 5 "$log"; } >&2
  done
  exit 1
}

command -v ip > /dev/null || skip "there is no ip command (apt-get install iproute2)"
if [[ ${KILN_IN_NAMESPACE:-} != 1 ]]; then
  unshare -rmnu true 2> /dev/null || skip "this kernel gives no network namespace to this user"
  KILN_IN_NAMESPACE=1 exec unshare -rmnu --fork --kill-child "$0" "$@"
fi

work=$(mktemp -d)
farm=$work/box1/.local/state/kiln/farm
export HOME=$work/box1 USER=alice PATH="$work/bin:$PATH"
unset KILN_KEYS KILN_SECRET_FILE KILN_SCHEDULER KILN_TRACKER KILN_DB XDG_STATE_HOME
mkdir -p "$work/bin" "$work/box1" "$work/box2"
ln -s "$kiln" "$work/bin/kiln"

# box2 is a namespace below this one, which is box1. Each has its name.
printf '%s\n' "127.0.0.1 localhost" "10.77.0.1 box1" "10.77.0.2 box2" > "$work/hosts"
mount --bind "$work/hosts" /etc/hosts
echo box1 > /proc/sys/kernel/hostname
unshare -nu sh -c 'echo box2 > /proc/sys/kernel/hostname; exec sleep 3600' & other=$!
pids=($other)
end_farm() { kiln farm down > /dev/null 2>&1 || true; }
trap 'end_farm; kill "${pids[@]}" 2> /dev/null || true; wait; rm -rf "$work"' EXIT
box2() { nsenter -t "$other" -n -u "$@"; }
until [[ $(readlink "/proc/$other/ns/net") != $(readlink /proc/self/ns/net) &&
         $(box2 cat /proc/sys/kernel/hostname) == box2 ]]; do sleep 0.02; done
ip link add cable1 type veth peer name cable2 2> /dev/null || skip "this kernel has no veth"
ip link set cable2 netns "$other"
ip link set lo up; ip address add 10.77.0.1/24 dev cable1; ip link set cable1 up
box2 ip link set lo up; box2 ip address add 10.77.0.2/24 dev cable2; box2 ip link set cable2 up

typed=0
# Runs one line, as somebody types it on a box.
type_on() {
  local box=$1 line=$2 begin
  begin=$(date +%s.%N)
  typed=$((typed + 1))
  case $box in
    box2) (cd "$work/box2" && box2 bash -c "$line") ;;
    *) (cd "$work/$box" && bash -c "$line") ;;
  esac || fail "on $box: $line"
  # The line without what the script adds to it for itself.
  line=$(sed -E 's/ 2?>+ [a-z]+\.log( 2>&1)?//g; s/ & echo \$! > [a-z]\.pid;?/ \&/g' <<< "$line")
  printf '%6.2f s  %s$ %s\n' "$(bc <<< "$(date +%s.%N) - $begin")" "$box" "$line"
}
# Ends the daemons and the capture.
end_all() {
  local pid
  end_farm
  kill "${pids[@]:1}" 2> /dev/null || true
  for pid in "${pids[@]:1}"; do
    # A child of this shell stays as a zombie until it is waited for.
    wait "$pid" 2> /dev/null || true
    for _ in $(seq 500); do [[ -d /proc/$pid ]] || break; sleep 0.02; done
  done
  pids=($other)
  rm -f "$work"/*/*.pid
}
collect() { local file; for file in "$work"/*/*.pid; do pids+=($(cat "$file")); done; }
record() {
  python3 -B "$capture" cable1 "$1" > "$work/ready" & pids+=($!)
  until grep -qs capturing "$work/ready"; do sleep 0.02; done
}

target=llvm; [[ $device != cpu ]] && target=$device
tune="kiln tune matmul --args 96,64,32 --target $target --trials 6"

# Types a line that `init` has printed.
type_printed() {
  local line=$1 box=box1
  if [[ $line == "box2\$ "* ]]; then box=box2 line=${line#*\$ }; fi
  case $line in
    "scp -rp "*) line="cp -rp ${line#scp -rp }"; line=${line/% box2:/ ..\/box2\/} ;;
    *" keys issue "*) line+=" > issue.log" ;;
    *" farm up "*) line+=" --device $device > up.log" ;;
    *" runner "*) line+=" --device $device 2>> r.log & echo \$! > r.pid" ;;
    *" tune "*) line="${line/*512,512,512/$tune} > tune.log 2>&1" ;;
  esac
  type_on "$box" "$line"
}

# The text of a computation and the names of calls, as plain text carries them.
words=(matmul placeholder kiln.v1.Scheduler/Submit kiln-secret "PRIVATE KEY")
record "$work/secured.bytes"
start=$(date +%s.%N)
type_on box1 "kiln keys init > init.log"
mapfile -t lines < <(sed -n 's/^  //p' "$work/box1/init.log")
for line in "${lines[@]}"; do type_printed "$line"; done
collect
printf '%d commands, %.1f s from nothing to the first job\n' "$typed" \
  "$(bc <<< "$(date +%s.%N) - $start")"
[[ $typed -le $most ]] || fail "expected at most $most commands"

# Both boxes measure, and a job that is submitted on box2 goes over the cable.
for _ in $(seq 500); do
  KILN_TRACKER=box1:9190 kiln workers --keys "$work/box1/farm-keys/alice" > "$work/box1/workers.log"
  grep -q box2: "$work/box1/workers.log" && break
  sleep 0.02
done
grep -q box2: "$work/box1/workers.log" || fail "the runner of box2 is not in the farm's list"
cp -rp "$work/box1/farm-keys/alice" "$work/box2/"
(cd "$work/box2" && box2 bash -c "$tune --scheduler box1:9290 --keys alice > tune.log 2>&1") ||
  fail "a job from box2 failed"
end_all
mapfile -t key < <(
  grep -hv -- '-----' "$work"/box*/{,farm-keys/}*/identity.pem \
    "$work/box1/farm-keys/authority/key.pem" | grep -E '^M' | cut -c1-40
)
if python3 -B "$capture" --find "$work/secured.bytes" "${words[@]}" "${key[@]}"; then
  fail "the cable carried these words in the clear"
fi
[[ $(stat -c %s "$work/secured.bytes") -gt 10000 ]] || fail "nothing was captured"

echo "A farm in plain text, as a check of the capture:"
record "$work/plain.bytes"
type_on box1 "kiln tracker --listen box1:9190 --insecure 2>> t.log & echo \$! > t.pid; \
kiln scheduler --listen box1:9290 --tracker box1:9190 --insecure 2>> s.log & echo \$! > s.pid" \
  > /dev/null
type_on box2 "kiln builder --listen box2:0 --tracker box1:9190 --insecure 2>> b.log & \
echo \$! > b.pid; kiln runner --listen box2:0 --tracker box1:9190 --insecure --device $device \
2>> r.log & echo \$! > r.pid" > /dev/null
collect
type_on box2 "$tune --scheduler box1:9290 > tune.log 2>&1" > /dev/null
end_all
python3 -B "$capture" --find "$work/plain.bytes" matmul kiln.v1.Scheduler/Submit ||
  fail "the capture does not find what plain text carries"
