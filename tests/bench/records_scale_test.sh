#!/bin/bash
# Runs the bench of large databases at a small size: its log is imported whole, in two parts, and
# each command answers.
set -euo pipefail
kiln=$TEST_SRCDIR/$TEST_WORKSPACE/client/cli/kiln
cd "$TEST_SRCDIR/$TEST_WORKSPACE/tests/bench"
out=$(/usr/bin/python3 -B records_scale.py "$kiln" --db "$TEST_TMPDIR/scale.db" --records 6000 --part 4000 --workloads 40)
echo "$out"
grep -q '^ *4,000 ' <<<"$out"
grep -q '^ *6,000 ' <<<"$out"
grep -q '^records distill ' <<<"$out"
records=$("$kiln" records stats --json --db "$TEST_TMPDIR/scale.db" |
  python3 -c 'import json, sys; print(sum(json.loads(line)["records"] for line in sys.stdin))')
[[ $records == 6000 ]]
