#!/bin/bash
# Runs fuzz targets under libFuzzer, AddressSanitizer and UndefinedBehaviorSanitizer:
#   deploy/fuzz.sh                     all of them, 600 s each
#   deploy/fuzz.sh dag_text            one
#   deploy/fuzz.sh dag_text 3600       for so many seconds
#   deploy/fuzz.sh dag_text FILE       one input, as often as a crash is looked into
# A target is a file tests/fuzz/targets/NAME_fuzz.cc with a corpus, tests/fuzz/targets/corpus/NAME.
# New inputs that a run finds are kept for the next run in FOLDER/NAME/inputs, and inputs that break
# something in FOLDER/NAME. KILN_FUZZ_FOLDER names FOLDER; the default is ~/.cache/kiln-fuzz. The
# exit status is 1 if an input broke something. The script needs clang 19 beside what the build
# needs, and installs it.
set -euo pipefail
cd "$(dirname "$0")/.."
. deploy/setup.sh

KILN_PACKAGES+=(clang-19 libclang-rt-19-dev llvm-19)
set_up

folder=${KILN_FUZZ_FOLDER:-$HOME/.cache/kiln-fuzz}
targets=tests/fuzz/targets
# The build has an output base of its own, because its flags would invalidate the other build's
# output.
bazel+=(--output_base="$folder/build")

if (($# > 0)); then
  [[ -f $targets/${1}_fuzz.cc ]] ||
    stop "there is no target '$1', expected one of: $(cd $targets && ls ./*_fuzz.cc | sed 's|./||; s|_fuzz.cc||' | paste -sd' ')"
  names=("$1")
else
  mapfile -t names < <(cd $targets && ls ./*_fuzz.cc | sed 's|./||; s|_fuzz.cc||')
fi
seconds=600 input=
if [[ ${2:-} =~ ^[0-9]+$ ]]; then
  seconds=$2
elif (($# > 1)); then
  [[ -f $2 ]] || stop "'$2' is neither a number of seconds nor a file"
  input=$2
fi

mkdir -p "$folder"
mapfile -t labels < <(printf "//$targets:%s_fuzz\n" "${names[@]}")
"${bazel[@]}" build --config=fuzz "${labels[@]}"
binaries=$("${bazel[@]}" info --config=fuzz bazel-bin 2>/dev/null)/$targets

# Stacks of allocations are short, and stacks of threads are not copied: an input then takes half as
# long.
export ASAN_OPTIONS=malloc_context_size=4:detect_stack_use_after_return=0:quarantine_size_mb=32
export UBSAN_OPTIONS=print_stacktrace=1
export LSAN_OPTIONS=suppressions=$PWD/deploy/leaks.supp:print_suppressions=0
export ASAN_SYMBOLIZER_PATH=/usr/bin/llvm-symbolizer-19

# Prints the last line of libFuzzer's statistics: "18909 inputs, 187 a second, coverage 9927".
summary() {
  awk '/^#[0-9]+.* cov: / {cov = $0; sub(/.* cov: /, "", cov); sub(/ .*/, "", cov)}
       /number_of_executed_units/ {n = $2} /average_exec_per_sec/ {rate = $2}
       END {printf "%s inputs, %s a second, coverage %s", n, rate, cov}' "$1"
}

# deploy/leaks.supp names a leak inside of gRPC by its call stack, which only slow unwinding finds.
# Slow unwinding costs two thirds of the inputs.
unwinding() {
  [[ $1 == scheduler_calls ]] && echo fast_unwind_on_malloc=0:malloc_context_size=8 || echo fast_unwind_on_malloc=1
}

failed=0
for name in "${names[@]}"; do
  work=$folder/$name
  mkdir -p "$work/inputs"
  if [[ -n $input ]]; then
    "$binaries/${name}_fuzz" "$input" || failed=1
    continue
  fi
  if ASAN_OPTIONS+=:$(unwinding "$name") "$binaries/${name}_fuzz" "$work/inputs" "$targets/corpus/$name" \
    -max_total_time="$seconds" -max_len=4096 -timeout=10 -rss_limit_mb=3000 -print_final_stats=1 \
    -artifact_prefix="$work/" >"$work/log" 2>&1; then
    say "$name: $(summary "$work/log"), nothing found"
  else
    failed=1
    say "$name: $(summary "$work/log"); an input breaks something, see $work/log"
    grep -aE 'kiln bug|ERROR|runtime error|Test unit written' "$work/log" | cut -c1-300 || true
  fi
done
exit $failed
