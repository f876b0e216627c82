#!/bin/bash
# Tests the scheduler as a process: help, refusals, the database and its lock, a tracker that is
# away, port file, SIGTERM, SIGKILL.
set -u
scheduler=$1
tmp=$(mktemp -d)
pid=
trap '[[ -z $pid ]] || kill -KILL "$pid" 2>/dev/null; rm -rf "$tmp"' EXIT
fail() { echo "FAILED: $*" >&2; cat "$tmp"/{err,log} >&2; exit 1; }

"$scheduler" --help >"$tmp/out" 2>"$tmp/err" || fail "--help"
for flag in --listen --tracker --db --max-jobs --log-level --port-file; do
  grep -q -- "$flag" "$tmp/out" || fail "--help lists no $flag"
done

refuse() {
  local message=$1; shift
  timeout 10 "$scheduler" --listen 127.0.0.1:0 "$@" >"$tmp/out" 2>"$tmp/err"
  local code=$?
  [[ $code -ne 0 && $code -ne 124 ]] || fail "$* gave exit status $code"
  cat "$tmp/out" "$tmp/err" | grep -q -- "$message" || fail "$*: expected '$message'"
}
db=$tmp/kiln.db
refuse "nonsense" --db "$db" --tracker nonsense
refuse "loud" --db "$db" --log-level loud
refuse "max-jobs" --db "$db" --max-jobs 0
refuse "no-such-folder" --db "$tmp/no-such-folder/kiln.db"
refuse "no-such-folder" --db "$db" --port-file "$tmp/no-such-folder/port"
echo "dear diary" >"$tmp/diary"
refuse "diary.*is not a" --db "$tmp/diary"
[[ $(cat "$tmp/diary") == "dear diary" ]] || fail "the diary was changed"
[[ ! -e $tmp/diary.lock ]] || fail "a lock file stays behind"

start() {
  rm -f "$tmp/port"
  # Nobody listens on port 9 here.
  "$scheduler" --listen 127.0.0.1:0 --tracker 127.0.0.1:9 --db "$db" --port-file "$tmp/port" \
    2>"$tmp/log" &
  pid=$!
  for _ in $(seq 500); do [[ -s $tmp/port ]] && break; sleep 0.02; done
  [[ -s $tmp/port ]] || fail "no port file"
}
start
refuse "in use by the scheduler with process id $pid" --db "$db"
for _ in $(seq 250); do grep -q "no connection to the tracker" "$tmp/log" && break; sleep 0.02; done
grep -q "no connection to the tracker at 127.0.0.1:9" "$tmp/log" || fail "nothing about the tracker"
kill -KILL "$pid"; wait "$pid" 2>/dev/null
start   # the lock went with its holder
kill -TERM "$pid"
wait "$pid" || fail "exit status $? after SIGTERM"
pid=
[[ ! -e $db.lock ]] || fail "a lock file stays behind"
echo PASSED
