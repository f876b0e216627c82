#!/bin/bash
# usage: deploy/gpu_sandbox.sh KILN [FOLDER]
#
# Tries the sandbox of a CUDA runner on this machine, with the program KILN
# (bazel-bin/client/cli/kiln), as the user that runs it and, if that is root, as nobody too. Prints
# a table: which means apply, what the child of the runner is and sees, and whether a search works
# inside. FOLDER keeps the logs (default: a new one). Takes some two minutes. Ends with 1 if a
# runner does not start, gives up namespaces that the machine has, or measures nothing; with 2 if
# there is no GPU.
set -u
kiln=$(readlink -f "${1:?usage: $0 KILN [FOLDER]}")
folder=${2:-$(mktemp -d /tmp/gpu-sandbox.XXXXXX)}
mkdir -p "$folder" && chmod 755 "$folder"
folder=$(readlink -f "$folder")
failed=0

nvidia-smi -L || { echo "no GPU here"; exit 2; }

# Columns of the table, one associative array for each.
rows=("means that apply" gaps "user of the child" capabilities "no new privileges" "system calls are filtered"
  "own namespaces" "folders at the root of its files" "devices and sockets that are open" "resident memory"
  "a search of 32 trials")
declare -A as_it_is as_nobody

# descendants PID: prints the processes below a process.
descendants() {
  local child
  for child in $(pgrep -P "$1"); do
    echo "$child"
    descendants "$child"
  done
}

# field PID NAME: prints a line of /proc/PID/status without its name.
field() { sed -n "s/^$2:[[:space:]]*//p" "/proc/$1/status" | tr '\t' ' '; }

# one_line: joins lines and cuts them.
one_line() { paste -sd ' ' | sed 's/|/\\|/g' | cut -c1-400; }

# is_child PID: whether a process is a child of a runner, or what starts one.
is_child() { tr '\0' ' ' 2>/dev/null <"/proc/$1/cmdline" | grep -qE ' (runner-child|--child) '; }

# describe COLUMN CHILD DAEMON: notes what a child is and sees.
describe() {
  local -n column=$1
  local child=$2 daemon=$3 kind own=
  column["user of the child"]=$(field "$child" Uid | cut -d ' ' -f 2)
  column["capabilities"]=$(field "$child" CapEff)
  column["no new privileges"]=$(field "$child" NoNewPrivs)
  column["system calls are filtered"]=$(field "$child" Seccomp)
  for kind in user mnt net pid ipc; do
    [ "$(readlink "/proc/$child/ns/$kind")" = "$(readlink "/proc/$daemon/ns/$kind")" ] || own+="$kind "
  done
  column["own namespaces"]=${own:-none}
  column["folders at the root of its files"]=$(ls "/proc/$child/root/" 2>&1 | one_line)
  column["devices and sockets that are open"]=$(find "/proc/$child/fd" -type l -printf '%l\n' 2>&1 |
    sed 's/:\[.*//' | sort | uniq -c | sed 's/^ *//' | paste -sd ';' | one_line)
  column["resident memory"]=$(field "$child" VmRSS)
}

# try COLUMN COMMAND...: runs a tracker, a runner and a search by the command in front.
try() {
  local -n told=$1
  local name=$1 at=$folder/$1 tracker runner address pid child=
  shift
  mkdir -p "$at" && chmod 777 "$at"
  "$@" "$kiln" tracker --listen 127.0.0.1:0 --port-file "$at/tracker" >"$at/tracker.log" 2>&1 &
  tracker=$!
  for _ in $(seq 100); do [ -s "$at/tracker" ] && break; sleep 0.1; done
  address=127.0.0.1:$(cat "$at/tracker")
  "$@" "$kiln" runner --device cuda:0 --tracker "$address" --port-file "$at/runner" >"$at/runner.log" 2>&1 &
  runner=$!
  for _ in $(seq 600); do
    [ -s "$at/runner" ] && break
    kill -0 "$runner" 2>/dev/null || break
    sleep 0.1
  done
  if [ -s "$at/runner" ]; then
    told["means that apply"]=$(grep -oE 'sandbox of [^ ]*: .*' "$at/runner.log" | sed 's/^sandbox of [^ ]*: //' | one_line)
    told["gaps"]=$(grep -oE 'the sandbox has a gap: .*' "$at/runner.log" | sed 's/^the sandbox has a gap: //' | one_line)
    # The child has no process below it.
    for pid in $(descendants "$runner"); do
      is_child "$pid" && [ -z "$(pgrep -P "$pid")" ] && child=$pid
    done
    if [ -n "$child" ]; then describe "$name" "$child" "$runner"; else failed=1; fi
  else
    told["gaps"]="the runner did not start: $(tail -n 2 "$at/runner.log" | one_line)"
    failed=1
  fi
  grep -q "does not open in them" "$at/runner.log" && failed=1
  for pid in $(descendants "$runner") "$runner" $(descendants "$tracker") "$tracker"; do
    is_child "$pid" || kill "$pid" 2>/dev/null
  done
  wait "$runner" "$tracker" 2>/dev/null
  # The runner of a search is in the sandbox, too.
  (cd "$at" && "$@" env HOME="$at" timeout 200 "$kiln" tune matmul --args 1024,1024,1024 --target cuda --trials 32 \
    --db "$at/kiln.db") >"$at/tune.log" 2>&1
  local code=$?
  told["a search of 32 trials"]="ended with $code: $(grep -E '^ended|^error' "$at/tune.log" | tail -n 2 | one_line)"
  ((code == 0)) || failed=1
}

try as_it_is env
if ((EUID == 0)) && command -v runuser >/dev/null; then
  if ! runuser -u nobody -- test -x "$kiln"; then
    # Other users need not see the folder of the program.
    cp "$kiln" "$folder/kiln" && chmod 755 "$folder/kiln" && kiln=$folder/kiln
  fi
  try as_nobody runuser -u nobody --
fi

echo
echo "| | as $(id -un) | as nobody |"
echo "|---|---|---|"
for row in "${rows[@]}"; do
  echo "| $row | ${as_it_is[$row]:--} | ${as_nobody[$row]:--} |"
done
echo
echo "logs are in $folder"
exit $failed
