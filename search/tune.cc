#include "search/tune.h"

#include <algorithm>
#include <deque>

namespace kiln::search {
namespace {

class TuneLoop {
 public:
  TuneLoop(std::span<TaskProgress> tasks, const TuneOptions& options, Measurer& measurer,
           const std::atomic<bool>& stop)
      : tasks_(tasks),
        options_(options),
        measurer_(measurer),
        stop_(stop),
        missing_(options.missing.begin(), options.missing.end()),
        next_number_(options.first_trial),
        ready_(tasks.size()) {}

  Status Run() {
    while (true) {
      KILN_RETURN_IF_ERROR(FillMeasurer());
      if (in_flight_ == 0) return stop_ ? Cancelled("stopped") : OkStatus();
      KILN_ASSIGN_OR_RETURN(const Outcome outcome, measurer_.Next());
      --in_flight_;
      Observe(outcome);
    }
  }

 private:
  bool NumbersLeft() const { return !missing_.empty() || next_number_ < options_.trials; }

  uint32_t TakeNumber() {
    if (missing_.empty()) return next_number_++;
    const uint32_t number = missing_.front();
    missing_.pop_front();
    return number;
  }

  Status FillMeasurer() {
    while (!stop_ && NumbersLeft() && in_flight_ < std::max(1, measurer_.capacity())) {
      const int task = ChooseTask();
      if (task < 0) return OkStatus();
      KILN_RETURN_IF_ERROR(RefillTask(task));
      if (ready_[task].empty()) continue;
      Trial trial{task, TakeNumber(), std::move(ready_[task].front())};
      ready_[task].pop_front();
      ++tasks_[task].trials;
      ++in_flight_;
      measurer_.Submit(std::move(trial));
    }
    return OkStatus();
  }

  // Candidates for at least one more trial, or the task is marked exhausted.
  Status RefillTask(int task) {
    if (!ready_[task].empty()) return OkStatus();
    KILN_ASSIGN_OR_RETURN(
        std::vector<Candidate> proposals,
        tasks_[task].policy->Propose(static_cast<int>(options_.proposals_per_call)));
    if (proposals.empty()) tasks_[task].exhausted = true;
    std::move(proposals.begin(), proposals.end(), std::back_inserter(ready_[task]));
    return OkStatus();
  }

  bool Finished(const TaskProgress& task) const {
    return task.exhausted || (options_.early_stopping > 0 && task.best_cost_s > 0 &&
                              task.trials - task.best_trial > options_.early_stopping);
  }

  int ChooseTask() const {
    int chosen = -1;
    for (size_t i = 0; i < tasks_.size(); ++i) {
      if (Finished(tasks_[i])) continue;
      if (chosen < 0 || tasks_[i].trials < tasks_[chosen].trials) chosen = static_cast<int>(i);
    }
    return chosen;
  }

  void Observe(const Outcome& outcome) {
    TaskProgress& task = tasks_[outcome.trial.task];
    if (outcome.valid && (task.best_cost_s == 0 || outcome.cost_s < task.best_cost_s)) {
      task.best_cost_s = outcome.cost_s;
      task.best_trial = task.trials;
    }
    const Observation observation{outcome.trial.candidate, outcome.valid, outcome.cost_s};
    task.policy->Observe({&observation, 1});
  }

  std::span<TaskProgress> tasks_;
  const TuneOptions& options_;
  Measurer& measurer_;
  const std::atomic<bool>& stop_;
  std::deque<uint32_t> missing_;
  uint32_t next_number_;
  int in_flight_ = 0;
  std::vector<std::deque<Candidate>> ready_;  // proposed, not yet submitted, per task
};

}  // namespace

Status Tune(std::span<TaskProgress> tasks, const TuneOptions& options, Measurer& measurer,
            const std::atomic<bool>& stop) {
  return TuneLoop(tasks, options, measurer, stop).Run();
}

}  // namespace kiln::search
