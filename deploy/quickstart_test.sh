#!/bin/bash
# quickstart.sh with a bazel that only notes how it is called: no server of it is left behind.
set -euo pipefail

fail() {
  echo "FAIL: $*" >&2
  exit 1
}

top=$TEST_TMPDIR/top
mkdir -p "$top/deploy" "$top/bazel-bin/client/cli"
cp deploy/quickstart.sh "$top/deploy/"
cat >"$top/deploy/setup.sh" <<'SETUP'
say() { echo "== $*"; }
stop() { echo "error: $*" >&2; exit 1; }
set_up() { bazel=("$PWD/bazel"); }
commit_flag() { echo --define=kiln_commit=1f0c; }
SETUP
cat >"$top/bazel" <<'BAZEL'
#!/bin/bash
echo "bazel $1" >>calls
[[ $1 != build ]] || { sleep "${BUILD_S:-0}"; exit "${BUILD_STATUS:-0}"; }
BAZEL
cat >"$top/bazel-bin/client/cli/kiln" <<'KILN'
#!/bin/bash
echo "kiln $1" >>calls
KILN
chmod +x "$top/bazel" "$top/bazel-bin/client/cli/kiln"

calls() { paste -sd, "$top/calls"; }

"$top/deploy/quickstart.sh" >/dev/null || fail "it ended with status $?"
[[ $(calls) == "bazel build,bazel shutdown,kiln tune" ]] || fail "it called: $(calls)"

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
