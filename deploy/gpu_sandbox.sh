#!/bin/bash
# usage: deploy/gpu_sandbox.sh KILN [FOLDER]
#
# Tries the sandbox of a CUDA runner on this machine, with the program KILN
# (bazel-bin/client/cli/kiln): which means apply, and whether a GPU works inside of them. It tunes a
# small matmul in a farm of its own, as the user that runs it and, if that is root, as nobody too.
# FOLDER keeps the logs (default: a new one). Takes some two minutes. Ends with 1 if a runner gave
# up namespaces that the machine has.
set -u
kiln=$(readlink -f "${1:?usage: $0 KILN [FOLDER]}")
folder=${2:-$(mktemp -d /tmp/gpu-sandbox.XXXXXX)}
mkdir -p "$folder" && chmod 755 "$folder"
failed=0

ls -l /dev/nvidia* 2>/dev/null
nvidia-smi -L || { echo "no GPU here"; exit 2; }

# try NAME COMMAND...: runs a tracker and a runner by the command in front, and shows what they say.
try() {
  local name=$1
  shift
  local at=$folder/$name
  mkdir -p "$at" && chmod 777 "$at"
  echo "== $name"
  "$@" "$kiln" tracker --listen 127.0.0.1:0 --port-file "$at/tracker" >"$at/tracker.log" 2>&1 &
  local tracker=$!
  for _ in $(seq 100); do [ -s "$at/tracker" ] && break; sleep 0.1; done
  local address=127.0.0.1:$(cat "$at/tracker")
  "$@" "$kiln" runner --device cuda:0 --tracker "$address" --port-file "$at/runner" >"$at/runner.log" 2>&1 &
  local runner=$!
  for _ in $(seq 900); do [ -s "$at/runner" ] && break; sleep 0.1; done
  grep -E "sandbox" "$at/runner.log"
  "$kiln" workers --tracker "$address" | sed -n '/^sandbox/,$p'
  # The child's processes, its view of the machine, and its memory.
  for pid in $(pgrep -P "$runner"); do
    ps -o pid,ppid,user,rss,args --ppid "$pid" --pid "$pid" | cut -c1-120
    for inner in $(pgrep -P "$pid"); do
      readlink "/proc/$inner/ns/net" "/proc/$inner/ns/pid" "/proc/$inner/ns/user" 2>/dev/null
      grep -E "^(Uid|CapEff|NoNewPrivs|Seccomp):" "/proc/$inner/status"
    done
  done
  grep -q "does not open in them" "$at/runner.log" && failed=1
  kill "$runner" "$tracker"
  wait "$runner" "$tracker" 2>/dev/null
}

try as-it-is env
if ((EUID == 0)) && command -v runuser >/dev/null; then try as-nobody runuser -u nobody --; fi

# A whole search, whose runner is in the sandbox.
echo "== a search"
(cd "$folder" && HOME=$folder timeout 300 "$kiln" tune matmul --args 1024,1024,1024 --target cuda --trials 64 --db "$folder/kiln.db") \
  >"$folder/tune.log" 2>&1 || { echo "the search failed"; failed=1; }
tail -n 5 "$folder/tune.log"
echo "logs are in $folder"
exit $failed
