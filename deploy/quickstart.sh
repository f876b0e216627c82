#!/bin/bash
# usage: deploy/quickstart.sh [OPTIONS OF kiln tune]      for instance --trials 200 --seed 1
# Installs what is missing, builds, and tunes the last 3x3 layer of ResNet for this machine's CPU.
# The records go to ./kiln.db in the top folder of the project.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. deploy/setup.sh

if [[ ${1:-} == --help || ${1:-} == -h ]]; then
  sed -n '2,4s/^# //p' deploy/quickstart.sh
  exit 0
fi

set_up
# Bazel leaves a server of 360 MB behind, which would also run beside the measurements.
stop_bazel() { "${bazel[@]}" shutdown >/dev/null 2>&1 || true; }
trap stop_bazel EXIT
progress=()
[[ -t 2 ]] || progress=(--noshow_progress)
say "building (several minutes the first time)"
"${bazel[@]}" build "${progress[@]}" --ui_event_filters=-info --show_result=0 "$(commit_flag)" \
  //client/cli:kiln || stop "the build failed: see the first error above"
trap - EXIT
stop_bazel

say "tuning conv2d + bias + relu of ResNet's last stage on this CPU"
bazel-bin/client/cli/kiln tune conv2d_nchw --args 1,7,7,512,512,3,3,1,1 --epilogue bias,relu --target llvm "$@"
