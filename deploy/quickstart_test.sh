#!/bin/bash
# Tests quickstart.sh with a bazel that only notes how it is called: no server of it may be left
# behind.
set -euo pipefail

fail() {
  echo "FAIL: $*" >&2
  exit 1
}

top=$TEST_TMPDIR/top
mkdir -p "$top/deploy" "$top/bazel-bin/client/cli"
sed 's/^longest_silence_s=60$/longest_silence_s=0.2/' deploy/quickstart.sh >"$top/deploy/quickstart.sh"
chmod +x "$top/deploy/quickstart.sh"
cat >"$top/deploy/setup.sh" <<'SETUP'
say() { echo "== $*"; }
stop() { echo "error: $*" >&2; exit 1; }
set_up() { bazel=("$PWD/bazel"); }
commit_flag() { echo --define=kiln_commit=1f0c; }
SETUP
cat >"$top/bazel" <<'BAZEL'
#!/bin/bash
echo "bazel $1" >>calls
[[ $1 != build ]] && exit
sleep "${BUILD_S:-0}"
echo "Analyzing: target //client/cli:kiln (31 packages loaded)" >&2
echo "[1,234 / 2,345] 2 actions, 1 running" >&2
if [[ -n ${SILENCE_S:-} ]]; then
  printf 'WARNING: half a line' >&2
  sleep "$SILENCE_S"
  echo ' and its end' >&2
fi
[[ ${BUILD_STATUS:-0} == 0 ]] || echo "ERROR: client/cli/x.cc:3:1: expected ;" >&2
exit "${BUILD_STATUS:-0}"
BAZEL
cat >"$top/bazel-bin/client/cli/kiln" <<'KILN'
#!/bin/bash
echo "kiln $1" >>calls
KILN
chmod +x "$top/bazel" "$top/bazel-bin/client/cli/kiln"

# Prints the output of a build without a terminal.
said() { "$top/deploy/quickstart.sh" 2>&1 >/dev/null; }

calls() { paste -sd, "$top/calls"; }

"$top/deploy/quickstart.sh" >/dev/null || fail "it ended with status $?"
[[ $(calls) == "bazel build,bazel shutdown,kiln tune" ]] || fail "it called: $(calls)"

words=$(said)
[[ $words =~ "== building: 1,234 of 2,345 steps, "[0-9]+"m "[0-9]{2}s ]] || fail "it said: $words"
[[ $words != *Analyzing* ]] || fail "it passed on what only bazel wants to know: $words"
[[ $(BUILD_STATUS=1 said || true) == *"ERROR: client/cli/x.cc:3:1: expected ;"*"error: the build failed"* ]] ||
  fail "an error was lost"

silent=$(SILENCE_S=5 said)
[[ $silent == *"== building: more than 1,234 of 2,345 steps, "* ]] || fail "in silence it said: $silent"
[[ $silent == *$'\n'"WARNING: half a line and its end"* ]] || fail "a line that came in two parts is: $silent"

rm "$top/calls"
status=0
BUILD_STATUS=1 "$top/deploy/quickstart.sh" >/dev/null 2>&1 || status=$?
[[ $status == 1 && $(calls) == "bazel build,bazel shutdown" ]] ||
  fail "after a failed build it ended with $status and called: $(calls)"

rm "$top/calls"
BUILD_S=2 "$top/deploy/quickstart.sh" >/dev/null 2>&1 &
until [[ -e $top/calls ]]; do sleep 0.1; done
kill -TERM $!
! wait $! || fail "stopped it ended with status 0"
[[ $(calls) == "bazel build,bazel shutdown" ]] || fail "stopped it called: $(calls)"
