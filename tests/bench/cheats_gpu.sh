#!/bin/bash
# usage: tests/bench/cheats_gpu.sh KILN OUTDIR [KILN_BEFORE] [GPU_TEST CUBIN]
#
# Everything about cheats that needs a GPU, in some five minutes: kernels that cheat, the tests of
# the runner on a GPU, and what the checks cost. Logs and tables go to OUTDIR, a summary to stdout.
# KILN_BEFORE is a program kiln without the checks; without it their cost is left out. GPU_TEST is
# the program of //runner:cuda_gpu_test and CUBIN that of //runner/testdata:gpu_programs, if bazel
# is not on this machine. Ends with 1 if anything failed.
set -u
kiln=$(readlink -f "${1:?usage: $0 KILN OUTDIR [KILN_BEFORE] [GPU_TEST CUBIN]}")
out=${2:?usage: $0 KILN OUTDIR [KILN_BEFORE] [GPU_TEST CUBIN]}
shift 2
before=
if (($# == 1 || $# == 3)); then before=$(readlink -f "$1"); shift; fi
gpu_test=${1:+$(readlink -f "$1")}
cubin=${2:+$(readlink -f "$2")}
here=$(dirname "$(readlink -f "$0")")
mkdir -p "$out" && out=$(readlink -f "$out")
failed=0

nvidia-smi -L || { echo "no GPU here"; exit 2; }

# step NAME SECONDS COMMAND...: runs a command with a time limit, and keeps what it prints.
step() {
  local name=$1 limit=$2 start=$SECONDS
  shift 2
  timeout "$limit" "$@" >"$out/$name.txt" 2>"$out/$name.log"
  local code=$?
  echo "== $name: ended with $code after $((SECONDS - start)) s"
  ((code == 0)) || failed=1
  return $code
}

step cheats 90 python3 -B "$here/kernel_cheats.py" "$kiln" --target cuda --folder "$out/cheats"
cat "$out/cheats.txt"
tail -n 5 "$out/cheats.log"
step cheats_small 60 python3 -B "$here/kernel_cheats.py" "$kiln" --target cuda --extent 128
cat "$out/cheats_small.txt"
tail -n 5 "$out/cheats_small.log"

if [ -n "$gpu_test" ]; then
  # The test finds its programs below its folder, and starts children of a runner: kiln_runner
  # --child.
  mkdir -p "$out/test/runner/testdata"
  cp "$cubin" "$out/test/runner/testdata/gpu_programs.cubin"
  printf '#!/bin/sh\nshift\nexec "%s" runner-child "$@"\n' "$kiln" >"$out/test/runner/kiln_runner"
  chmod +x "$out/test/runner/kiln_runner"
  step gpu_test 100 env -C "$out/test" "$gpu_test"
  grep -E "FAILED|PASSED|Failure|Expected|Actual|elements, calls|^ +[0-9]+ +[0-9] " "$out/gpu_test.txt" | head -n 60
fi

if [ -n "$before" ]; then
  step cost 150 python3 -B "$here/cheat_cost.py" "$before" "$kiln" --target cuda --args 512,512,512 --trials 48 --rounds 5
  cat "$out/cost.txt"
fi
echo "logs are in $out"
exit $failed
