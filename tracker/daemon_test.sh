#!/bin/bash
# Tests the tracker as a process: help, refusals, port file, SIGTERM, SIGINT.
set -u
tracker=$1
tmp=$(mktemp -d)
pid=
trap '[[ -z $pid ]] || kill -KILL "$pid" 2>/dev/null; rm -rf "$tmp"' EXIT
fail() { echo "FAILED: $*" >&2; cat "$tmp"/{err,log} >&2; exit 1; }

"$tracker" --help >"$tmp/out" 2>"$tmp/err" || fail "--help"
grep -q -- --port-file "$tmp/out" || fail "--help lists no --port-file"

refuse() {
  local message=$1; shift
  timeout 10 "$tracker" "$@" >"$tmp/out" 2>"$tmp/err"
  local code=$?
  [[ $code -ne 0 && $code -ne 124 ]] || fail "$* gave exit status $code"
  cat "$tmp/out" "$tmp/err" | grep -q -- "$message" || fail "$*: expected '$message'"
}
refuse "nonsense" --listen nonsense
refuse "loud" --log-level loud --listen 127.0.0.1:0
refuse "deadline-ms" --deadline-ms 5
refuse "no-such-folder" --listen 127.0.0.1:0 --port-file "$tmp/no-such-folder/port"
refuse "there is no flag --no-such-flag" --no-such-flag

start() {
  rm -f "$tmp/port"
  "$tracker" --listen "127.0.0.1:$1" --port-file "$tmp/port" 2>"$tmp/log" &
  pid=$!
  for _ in $(seq 500); do [[ -s $tmp/port ]] && break; sleep 0.02; done
  [[ -s $tmp/port ]] || fail "no port file"
  port=$(cat "$tmp/port")
}
stop() {
  kill "-$1" "$pid"
  wait "$pid" || fail "exit status $? after SIG$1"
  pid=
  grep -q "serving on 127.0.0.1:$port" "$tmp/log" || fail "no line with the address"
}
start 0
refuse "cannot listen on 127.0.0.1:$port" --listen "127.0.0.1:$port"
same=$port
stop TERM
start "$same"   # free again at once
stop INT
echo PASSED
