#!/bin/bash
# Runs the jobs that tests/bench/time_to_quality.py reports on: five tasks, each by random sampling,
# under the analytic model, under the learned one, and under the learned one that begins with what
# the other four tasks' jobs measured.
#
#   tests/bench/time_to_quality.sh KILN TARGET FOLDER [TUNE-OPTION...]
#
# KILN: the binary. TARGET: cuda, llvm or null. FOLDER gets a database and a log for each job, the
# table and the plots; jobs whose database is there already are not run again. Further words go to
# each `kiln tune`.
#
#   RANDOM_TRIALS=1000 TRIALS=300 SEEDS="1 2" BUDGET_S=530 TASKS="1 2 3 4 5"
#
# BUDGET_S: after so many seconds no further job is begun; all jobs of one seed come before those of
# the next.
set -euo pipefail
if (($# < 3)); then
  sed -n '2,15s/^# \{0,1\}//p' "$0" >&2
  exit 2
fi
kiln=$1 target=$2 folder=$3
shift 3
more=("$@")
random_trials=${RANDOM_TRIALS:-1000} trials=${TRIALS:-300} budget_s=${BUDGET_S:-530}
read -ra seeds <<<"${SEEDS:-1 2}"
read -ra wanted <<<"${TASKS:-1 2 3 4 5}"
report=$(dirname "$(readlink -f "$0")")/time_to_quality.py
mkdir -p "$folder"

# Readings are short, because first readings only rank, and nothing is measured again.
case $target in
  cuda*) min_repeat_ms=2 ;;
  *) min_repeat_ms=10 ;;
esac

task_words() {
  case $1 in
    1) echo matmul --args 1024,1024,1024 ;;
    2) echo conv2d_nhwc --args 1,7,7,512,512,3,3,1,1 --epilogue bias,relu ;;
    3) echo conv2d_nhwc --args 1,56,56,64,64,3,3,1,1 --epilogue bias,relu ;;
    4) echo conv2d_nhwc --args 1,28,28,256,128,3,3,2,1 --epilogue bias,relu ;;
    5) echo softmax --args 1024,1000 ;;
    *) echo "time_to_quality.sh: there is no task $1: 1 to 5" >&2; return 2 ;;
  esac
}

out_of_time() { ((SECONDS >= budget_s)); }

# job NAME TASK POLICY TRIALS SEED [OPTION...]: runs one job.
job() {
  local name=$1 task=$2 policy=$3 count=$4 seed=$5
  shift 5
  local db=$folder/$name.db words
  [[ -e $folder/$name.done ]] && return
  if out_of_time; then
    echo "no time is left for $name"
    return
  fi
  [[ $policy == warm ]] || rm -f "$db"
  words=$(task_words "$task")
  local from=$SECONDS
  # shellcheck disable=SC2086  # an operator and its options, without blanks within
  if ! "$kiln" tune $words --target "$target" --db "$db" --policy "sketch.${policy/warm/xgb}" --trials "$count" \
    --seed "$seed" --finalists 0 --min-repeat-ms "$min_repeat_ms" "$@" "${more[@]}" >"$folder/$name.log" 2>&1; then
    echo "$name failed:" >&2
    tail -n 5 "$folder/$name.log" >&2
    return 1
  fi
  touch "$folder/$name.done"
  echo "$name: $count trials in $((SECONDS - from)) s, $SECONDS s in all"
}

# Runs a warm-started job of the task, which begins with the results of all other tasks' jobs.
warm_job() {
  local task=$1 seed=$2 others=() other db
  for other in "${wanted[@]}"; do
    db=$folder/xgb_t${other}_s${seeds[0]}.db
    if [[ $other != "$task" && -e $db ]]; then others+=("$db"); fi
  done
  if ((${#others[@]} == 0)) || [[ -e $folder/warm_t${task}_s$seed.done ]]; then return; fi
  python3 "$report" pool --out "$folder/warm_t${task}_s$seed.db" "${others[@]}"
  job "warm_t${task}_s$seed" "$task" warm "$trials" "$seed"
}

for seed in "${seeds[@]}"; do
  for task in "${wanted[@]}"; do job "xgb_t${task}_s$seed" "$task" xgb "$trials" "$seed" --no-warm-start; done
  for task in "${wanted[@]}"; do warm_job "$task" "$seed"; done
  if [[ $seed == "${seeds[0]}" ]]; then
    for task in "${wanted[@]}"; do job "random_t${task}" "$task" random "$random_trials" "$seed"; done
  fi
  for task in "${wanted[@]}"; do job "analytic_t${task}_s$seed" "$task" analytic "$trials" "$seed" --no-warm-start; done
done

shopt -s nullglob
python3 "$report" report --out "$folder" "$folder"/*_t*.db
