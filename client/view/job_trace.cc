#include "client/view/job_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "scheduler/words/format.h"

namespace kiln::client {
namespace {

// Counters change no more often, so that a file has no more of them than the job's time needs.
constexpr int64_t kCounterStep_us = 10'000;
constexpr int kRoundLane = 1;

}  // namespace

JobTrace::JobTrace(const std::string& job_id, Options options, TraceEvents& events)
    : job_id_(job_id),
      with_phases_(options.with_phases),
      rounds_(std::make_move_iterator(options.rounds.begin()),
              std::make_move_iterator(options.rounds.end())),
      events_(events) {
  events_.NameGroup(kJobGroup, fmt::format("job {}", job_id), 0);
  if (!rounds_.empty()) events_.NameLane(kJobGroup, kRoundLane, "rounds of the search");
}

void JobTrace::Add(const v1::Record& record) {
  ++trials_;
  const v1::TrialResult& result = record.result();
  std::vector<TrialStep> steps = StepsOf(result);
  if (steps.empty()) {
    ++without_instants_;
    return;
  }
  if (round_end_us_ == 0) round_end_us_ = steps.front().begin_us;
  WriteRounds(steps.back().end_us);
  Place place = kNowhere;
  const auto go = [&](int64_t at_us, Place to) {
    Push({.at_us = at_us, .from = place, .to = to});
    place = to;
  };
  for (size_t i = 0; i < steps.size(); ++i) {
    const TrialStep& step = steps[i];
    if (step.kind == StepKind::kPhase) continue;
    if (step.kind == StepKind::kWait) {
      const bool is_last = i + 1 == steps.size();
      go(step.begin_us, is_last ? kCommit : place == kNowhere ? kToBuilder : kToRunner);
      continue;
    }
    const bool is_build = step.kind == StepKind::kBuild;
    go(step.begin_us, is_build ? kBuild : kRun);
    Event call{.at_us = step.begin_us, .trial = record.trial(), .task = record.task_index()};
    call.worker = is_build ? "builder " + result.builder() : "runner " + result.runner();
    call.trace_id = result.trace_id();
    if (result.error() != v1::NO_ERROR) call.error = ErrorName(result.error());
    size_t end = i + 1;
    while (with_phases_ && end < steps.size() && steps[end].kind == StepKind::kPhase) ++end;
    call.steps.assign(steps.begin() + static_cast<ptrdiff_t>(i),
                      steps.begin() + static_cast<ptrdiff_t>(end));
    Push(std::move(call));
  }
  go(steps.back().end_us, kNowhere);
}

void JobTrace::Push(Event event) {
  waiting_.push(std::move(event));
  while (waiting_.size() > kWindow) {
    Write(waiting_.top());
    waiting_.pop();
  }
}

void JobTrace::Finish() {
  for (; !waiting_.empty(); waiting_.pop()) Write(waiting_.top());
  if (is_counter_old_) WriteCounter(last_us_);
}

void JobTrace::Write(const Event& event) {
  if (!event.steps.empty()) return WriteCall(event);
  // The counter shows what was so until now.
  const bool is_due = event.at_us > last_us_ && event.at_us >= counted_us_ + kCounterStep_us;
  if (is_counter_old_ && is_due) WriteCounter(last_us_);
  if (event.from != kNowhere) --in_place_[event.from];
  if (event.to != kNowhere) ++in_place_[event.to];
  last_us_ = std::max(last_us_, event.at_us);
  is_counter_old_ = true;
}

void JobTrace::WriteCounter(int64_t at_us) {
  const auto number = [&](Place place) { return static_cast<double>(in_place_[place]); };
  events_.Counter(kJobGroup, "trials in flight", static_cast<double>(at_us),
                  {{"wait for a builder", number(kToBuilder)},
                   {"build", number(kBuild)},
                   {"wait for a runner", number(kToRunner)},
                   {"run", number(kRun)},
                   {"wait for the commit", number(kCommit)}});
  counted_us_ = at_us;
  is_counter_old_ = false;
}

// A round ends with the commit of the last of its trials. The store knows how many trials had
// results then.
void JobTrace::WriteRounds(int64_t at_us) {
  for (; !rounds_.empty() && rounds_.front().trials() <= trials_; rounds_.pop_front()) {
    const v1::Round& round = rounds_.front();
    const int64_t end_us = std::max(at_us, round_end_us_);
    events_.Slice(kJobGroup, kRoundLane,
                  fmt::format("round {}, task {}", round.number(), round.task_index()),
                  static_cast<double>(round_end_us_), static_cast<double>(end_us - round_end_us_),
                  {{"search and training, s", fmt::format("{:.6g}", round.search_s())},
                   {"trials so far", fmt::to_string(round.trials())},
                   {"objective, s", fmt::format("{:.6g}", round.total_latency_s())}});
    events_.Counter(kJobGroup, "search and training of a round, s", static_cast<double>(end_us),
                    {{"seconds", round.search_s()}});
    round_end_us_ = end_us;
  }
}

JobTrace::Worker& JobTrace::WorkerOf(const Event& event) {
  const auto [at, is_new] = workers_.try_emplace(event.worker);
  if (is_new) {
    at->second.group = kJobGroup + static_cast<int>(workers_.size());
    // Builders stand above runners.
    const bool is_build = event.steps.front().kind == StepKind::kBuild;
    events_.NameGroup(at->second.group, event.worker, is_build ? 1 : 2);
  }
  return at->second;
}

// Returns the lane that was left last. Lanes count from 1.
int JobTrace::LaneOf(Worker& worker, const TrialStep& call) {
  size_t best = worker.ends_us.size();
  for (size_t i = 0; i < worker.ends_us.size(); ++i) {
    if (worker.ends_us[i] > call.begin_us) continue;
    if (best == worker.ends_us.size() || worker.ends_us[i] > worker.ends_us[best]) best = i;
  }
  const int lane = static_cast<int>(best) + 1;
  if (best == worker.ends_us.size()) {
    worker.ends_us.push_back(0);
    events_.NameLane(worker.group, lane, fmt::format("slot {}", lane));
  }
  worker.ends_us[best] = call.end_us;
  return lane;
}

void JobTrace::WriteCall(const Event& event) {
  Worker& worker = WorkerOf(event);
  const TrialStep& call = event.steps.front();
  const int lane = LaneOf(worker, call);
  for (const TrialStep& step : event.steps) {
    const auto begin_us = static_cast<double>(step.begin_us);
    const auto us = static_cast<double>(step.end_us - step.begin_us);
    if (step.kind == StepKind::kPhase) {
      events_.Slice(worker.group, lane, step.name, begin_us, us);
    } else {
      events_.Slice(worker.group, lane, fmt::format("trial {}", event.trial), begin_us, us,
                    {{"trial", fmt::format("{}/{}", job_id_, event.trial)},
                     {"task", fmt::to_string(event.task)},
                     {"error", event.error},
                     {"trace_id", event.trace_id}});
    }
  }
}

}  // namespace kiln::client
