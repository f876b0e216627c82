#!/bin/bash
# usage: deploy/test.sh [BAZEL TEST OPTIONS] [TARGETS]      all tests (//...) without a target
# Installs what is missing, then builds and runs the tests. The last line is "N passed, N failed,
# N skipped", test cases being counted; a target that does not build, crashes or times out counts as
# failed. Exit status 0 when tests have passed and none has failed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. deploy/setup.sh

if [[ ${1:-} == --help || ${1:-} == -h ]]; then
  sed -n '2,5s/^# //p' deploy/test.sh
  exit 0
fi

targets=//...
for argument in "$@"; do
  case $argument in //* | :* | @* | -//*) targets= ;; esac
done

# The format of the sources is a test.
KILN_PACKAGES+=(clang-format-19)
set_up
events=$(mktemp)
finish() {
  rm -f "$events"
  "${bazel[@]}" shutdown >/dev/null 2>&1 || true
}
trap finish EXIT

say "testing ${targets:-$*}"
# The summary counts these events.
status=0
"${bazel[@]}" test --keep_going --noshow_progress --show_result=0 --test_summary=short \
  --build_event_json_file="$events" "$@" $targets || status=$?
/usr/bin/python3 -B deploy/test_summary.py "$events" "$status"
