#!/bin/bash
# usage: deploy/quickstart.sh [OPTIONS OF kiln tune]      for instance --trials 200 --seed 1
# Installs what is missing, builds the program and the library that runs what it compiles, and tunes
# the last 3x3 layer of ResNet for this machine's CPU. The records go to ./kiln.db in the top folder
# of the project.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. deploy/setup.sh

if [[ ${1:-} == --help || ${1:-} == -h ]]; then
  sed -n '2,5s/^# //p' deploy/quickstart.sh
  exit 0
fi

longest_silence_s=60
# "[1,234 / 2,345] 2 actions running" becomes "== building: 1,234 of 2,345 steps, 1m 05s". Bazel
# reports ever less often, after an hour each ten minutes; a line in between says that it builds.
plain_progress() {
  local line part='' status steps=''
  say_steps() { say "building: $1, $((SECONDS / 60))m $(printf %02d $((SECONDS % 60)))s"; }
  while true; do
    status=0
    IFS= read -r -t "$longest_silence_s" line || status=$?
    line=$part$line part=''
    if ((status > 128)); then
      part=$line
      say_steps "${steps:+more than }${steps:-it begins}"
      continue
    fi
    ((status == 0)) || break
    if [[ $line =~ ^\[([0-9,]+)\ /\ ([0-9,]+)\] ]]; then
      steps="${BASH_REMATCH[1]} of ${BASH_REMATCH[2]} steps"
      say_steps "$steps"
    elif [[ ! $line =~ ^(Loading|Analyzing): ]]; then
      echo "$line"
    fi
  done
}

set_up
# Bazel leaves a server of 360 MB behind, which would also run beside the measurements.
stop_bazel() { "${bazel[@]}" shutdown >/dev/null 2>&1 || true; }
trap stop_bazel EXIT
# On a terminal bazel draws its progress. Elsewhere a line now and then reports the progress, and
# other lines of bazel, errors above all, pass unchanged.
build() {
  "${bazel[@]}" build "$@" --ui_event_filters=-info --show_result=0 "$(commit_flag)" //client/cli:kiln \
    //runtime:libkiln_runtime.so
}
say "building (several minutes the first time)"
if [[ -t 2 ]]; then
  build
else
  { build --curses=no --color=no --show_progress_rate_limit=15 2>&1 >&3 | plain_progress >&2; } 3>&1
fi || stop "the build failed: see the first error above"
trap - EXIT
stop_bazel

say "tuning conv2d + bias + relu of ResNet's last stage on this CPU"
bazel-bin/client/cli/kiln tune conv2d_nchw --args 1,7,7,512,512,3,3,1,1 --epilogue bias,relu --target llvm "$@"
