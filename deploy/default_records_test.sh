#!/bin/bash
# Tests default_records.sh with small jobs for the target null.
set -euo pipefail

fail() {
  echo "FAIL: $*" >&2
  exit 1
}

kiln=$PWD/client/cli/kiln
cd "$TEST_TMPDIR"
script=$TEST_SRCDIR/$TEST_WORKSPACE/deploy/default_records.sh
cat >operators.txt <<'LIST'
1 matmul 16,16,16
1 matmul 32,32,32
LIST
cat >jobs.txt <<'LIST'
# share, words of kiln tune
1 matmul --args 24,24,24 --trials 6 --policy sketch.random
3 --tasks operators.txt --trials 8 --policy sketch.random
LIST

"$script" "$kiln" out.records --target null --minutes 2 --jobs jobs.txt >said 2>&1 || fail "$(cat said)"
grep -q "== --tasks operators.txt --trials 8 --policy sketch.random: 1.500 minutes" said || fail "$(cat said)"
lines=$("$kiln" records distill out.records --extended 2>errors | wc -l)
[[ $lines == 3 ]] || fail "expected a line for each computation, found $lines: $(cat said errors)"

# A job that fails does not keep the others from being shipped, and the script says so in the end.
echo '1 no_such_operator --args 1' >>jobs.txt
rm out.records
if "$script" "$kiln" out.records --target null --minutes 2 --jobs jobs.txt >said 2>&1; then
  fail "a failed job passed: $(cat said)"
fi
grep -q "error: the job failed: no_such_operator" said || fail "$(cat said)"
[[ -s out.records ]] || fail "the other jobs were not shipped: $(cat said)"

for words in "" "$kiln" "$kiln out --minutes soon" "$kiln out --jobs" "$kiln out --no-such"; do
  # The words are separate arguments.
  # shellcheck disable=SC2086
  if "$script" $words >said 2>&1; then fail "'$words' was taken"; fi
  grep -q "^error: " said || fail "'$words': $(cat said)"
done
