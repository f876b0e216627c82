#!/bin/bash
# usage: deploy/default_records.sh KILN OUT [--target TARGET] [--minutes N] [--jobs FILE]
# Tunes common networks and operators on this machine, by the program KILN, and writes the best
# records as the file OUT. That of an H200 ships with Kiln, as client/shipped/default.records.
# The database OUT.db stays, and a later call goes on with it. OUT is written after each job, so a
# call that was ended early has left a file, too.
#   --target TARGET  cuda by default
#   --minutes N      time of all jobs together, 5.5 by default; each job has its share of it
#   --jobs FILE      other jobs than deploy/default_records/jobs.txt, of the same form
set -euo pipefail

usage() {
  sed -n '2,9s/^# //p' "${BASH_SOURCE[0]}"
}

stop() {
  echo "error: $*" >&2
  exit 1
}

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
target=cuda minutes=5.5 jobs=$here/default_records/jobs.txt
words=()
while (($# > 0)); do
  case $1 in
    --help | -h) usage; exit 0 ;;
    --target | --minutes | --jobs)
      (($# > 1)) || stop "$1: expected a value"
      declare "${1#--}=$2"
      shift
      ;;
    -*) stop "$1 is no option of this script: see --help" ;;
    *) words+=("$1") ;;
  esac
  shift
done
((${#words[@]} == 2)) || stop "expected KILN and OUT, found ${#words[@]} words: see --help"
kiln=$(realpath "${words[0]}") out=$(realpath -m "${words[1]}") jobs=$(realpath "$jobs")
[[ -x $kiln ]] || stop "${words[0]} is no program"
[[ $minutes =~ ^[0-9]+(\.[0-9]+)?$ ]] || stop "--minutes $minutes: expected a number"

all=$(awk '!/^#/ && NF > 0 {sum += $1} END {print sum + 0}' "$jobs")
[[ $all != 0 ]] || stop "$jobs has no job with a share of the time"
cd "$(dirname "$jobs")"
failed=0
while read -r share line; do
  [[ -n $share && $share != \#* ]] || continue
  read -ra job <<<"$line"
  of_job=$(awk -v share="$share" -v all="$all" -v minutes="$minutes" \
    'BEGIN {printf "%.3f", share / all * minutes}')
  echo "== $line: $of_job minutes"
  "$kiln" tune "${job[@]}" --target "$target" --minutes "$of_job" --quiet --db "$out.db" </dev/null ||
    { echo "error: the job failed: $line" >&2; failed=1; }
  "$kiln" records ship --db "$out.db" -o "$out" || failed=1
done <"$jobs"
exit "$failed"
