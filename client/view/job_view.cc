#include "client/view/job_view.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/console/terminal.h"
#include "base/text/shell_word.h"
#include "base/text/units.h"
#include "client/view/kernel_values.h"
#include "client/view/task_window.h"
#include "scheduler/words/format.h"
#include "scheduler/words/job_queue.h"
#include "scheduler/words/variant_groups.h"
#include "search/tuning/estimate_phase.h"

namespace kiln::client {
namespace {

constexpr std::string_view kSpinner[] = {"|", "/", "-", "\\"};
// Least columns of a task in the table.
constexpr int kMinColumns = 12;
// Lines of the table's header and rule.
constexpr int kTableHead = 2;
constexpr double kLongWait_s = 1;
// Part of the job from one line of progress to the next.
constexpr double kStep = 0.1 - 1e-9;

bool Waits(const v1::JobStatus& job) {
  return job.state() == v1::RUNNING && job.waiting_for_workers() != 0;
}

std::string ActivityText(const v1::JobStatus& job) {
  if (WaitsForResults(job)) return job.phase();
  if (!Waits(job)) {
    const bool remeasured =
        job.state() == v1::RUNNING && !job.phase().empty() && !IsEstimatePhase(job.phase());
    return remeasured ? job.phase() : std::string(JobStateName(job.state()));
  }
  return "waiting for workers" + (job.message().empty() ? "" : ": " + FirstLine(job.message()));
}

// Returns the objective, as far as it is known.
std::string ObjectiveText(const v1::JobStatus& job) {
  const std::optional<double> objective_s = ObjectiveOf(job);
  if (objective_s.has_value() || !IsEstimatePhase(job.phase()))
    return LatencyCell(objective_s.value_or(0));
  return job.phase();
}

}  // namespace

std::optional<std::string> JobView::Improvement(const v1::Record& record) {
  const double cost_s = CostOf(record.result());
  const size_t task_index = record.task_index();
  if (cost_s <= 0 || record.result().stopped_early()) return {};
  if (best_s_.size() <= task_index) best_s_.resize(task_index + 1);
  std::optional<double>& best_s = best_s_[task_index];
  if (best_s.has_value() && cost_s >= *best_s) return {};
  best_s = cost_s;
  std::string line = fmt::format("trial {:>4}  {:>10}  {:>14}", record.trial(), LatencyCell(cost_s),
                                 SpeedCell(record.flop_count(), cost_s));
  if (task_index >= static_cast<size_t>(status_.tasks_size())) return line;
  const v1::TaskStatus& task = status_.tasks(record.task_index());
  const bool unscheduled = task.reference_record_id() == record.id() && record.id() != 0;
  const std::string speed_up = SpeedUp(task.reference_cost_s(), cost_s);
  const std::string_view reference = ReferenceName(status_.spec().options());
  if (unscheduled) {
    line += fmt::format("  {}", reference);
  } else if (!speed_up.empty()) {
    line += fmt::format("  {} over {}", speed_up, reference);
  }
  if (const std::string values = KernelValues(record.steps()); !values.empty())
    line += "  " + values;
  if (status_.tasks_size() > 1) line += fmt::format("  {}", task.spec().description());
  return line;
}

std::vector<std::string> JobView::Observe(const v1::JobEvent& event) {
  std::vector<std::string> lines;
  KeepKnown(event.status(), lines);
  seen_ = true;
  // A short wait is not news: every job waits for a moment at its start.
  if (Waits(status_) && status_.elapsed_s() >= kLongWait_s && ActivityText(status_) != last_wait_) {
    last_wait_ = ActivityText(status_);
    lines.push_back(last_wait_);
  }
  if (WaitsForResults(status_) && status_.phase() != last_wait_) {
    last_wait_ = status_.phase();
    lines.push_back(last_wait_);
  }
  for (; seen_notices_ < status_.notices_size(); ++seen_notices_) {
    notices_.push_back(status_.notices(seen_notices_));
    lines.push_back(notices_.back());
  }
  if (!printed_estimate_ && IsEstimatePhase(status_.phase())) {
    printed_estimate_ = true;
    lines.push_back(Totals(status_.elapsed_s()));
  }
  if (event.has_record()) ObserveRecord(event.record(), lines);
  const double progress = ProgressOf(status_);
  const uint32_t done = status_.trials_done();
  const bool more = done > printed_trials_;
  if (more && (progress >= printed_progress_ + kStep || status_.state() >= v1::SUCCEEDED)) {
    printed_trials_ = done;
    printed_progress_ = progress;
    lines.push_back(Totals(status_.elapsed_s()));
  }
  return lines;
}

// Keeps the results of earlier jobs, which only the status of a running job has.
void JobView::KeepKnown(v1::JobStatus status, std::vector<std::string>& lines) {
  for (int i = 0; i < status.tasks_size(); ++i) {
    v1::TaskStatus& task = *status.mutable_tasks(i);
    const bool seen = i < status_.tasks_size();
    const bool before = seen && status_.tasks(i).known_states() > 0;
    const std::string tuned_by = TunedByText(status, i);
    if (!tuned_by.empty() && !(seen && TunedByText(status_, i) == tuned_by))
      lines.push_back(tuned_by);
    if (task.known_states() > 0 && !before && tuned_by.empty()) {
      lines.push_back(KnownText(task));
      if (status.tasks_size() > 1) lines.back() += "  " + task.spec().description();
    } else if (task.known_states() == 0 && before) {
      task.set_known_states(status_.tasks(i).known_states());
      task.set_known_cost_s(status_.tasks(i).known_cost_s());
      task.set_known_record_id(status_.tasks(i).known_record_id());
    }
  }
  status_ = std::move(status);
}

bool JobView::TurnsKnobs() const {
  return status_.spec().options().policy().starts_with("template.");
}

// Returns a trial's line such as
// "trial   12    1.372 ms  current/best 168.6/184.4 GFLOP/s  13/64  2.0 s  tile_y=[-1,8]".
std::string JobView::KnobTrial(const v1::Record& record) const {
  const size_t task = record.task_index();
  const double cost_s = CostOf(record.result());
  const double best_s = task < best_s_.size() ? best_s_[task].value_or(0) : 0;
  const auto speed = [&](double seconds) {
    return seconds > 0 && record.flop_count() > 0 ? 1e-9 * record.flop_count() / seconds : 0;
  };
  std::string line = fmt::format(
      "trial {:>4}  {:>10}  current/best {:.4g}/{:.4g} GFLOP/s  {}  {}", record.trial(),
      cost_s > 0 ? LatencyCell(cost_s) : std::string(ErrorName(record.result().error())),
      speed(cost_s), speed(best_s), TrialsText(status_), FormatElapsed(status_.elapsed_s()));
  const std::string point = ConfigurationOf(record);
  if (!point.empty()) line += "  " + point;
  if (task < static_cast<size_t>(status_.tasks_size()) && status_.tasks_size() > 1)
    line += "  " + status_.tasks(static_cast<int>(task)).spec().description();
  if (cost_s <= 0) line += ": " + FirstLine(record.result().message());
  return line;
}

void JobView::ObserveRecord(const v1::Record& record, std::vector<std::string>& lines) {
  if (TurnsKnobs()) {
    (void)Improvement(record);
    last_trial_ = KnobTrial(record);
    lines.push_back(last_trial_);
    return;
  }
  const uint32_t kind = record.result().error();
  if (kind != v1::NO_ERROR && (seen_errors_ >> kind & 1) == 0) {
    seen_errors_ |= 1u << kind;
    const std::string values = KernelValues(record.steps());
    lines.push_back(fmt::format("trial {:>4}  {}: {}{}{}", record.trial(), ErrorName(kind), values,
                                values.empty() ? "" : ": ", FirstLine(record.result().message())));
  }
  if (auto line = Improvement(record)) lines.push_back(*std::move(line));
}

std::string JobView::Totals(double elapsed_s) const {
  std::string line = fmt::format("{} {}  trials {}  errors {}  time {}", ObjectiveWord(status_),
                                 ObjectiveText(status_), TrialsText(status_), ErrorCounts(status_),
                                 FormatElapsed(elapsed_s));
  const double progress = ProgressOf(status_);
  if (status_.trials_done() > 0 && progress < 1 && status_.state() < v1::SUCCEEDED) {
    line += fmt::format("  left {}", FormatElapsed(elapsed_s * (1 - progress) / progress));
  }
  const std::string pace = PaceText(status_);
  if (!pace.empty()) line += "  " + pace;
  if (status_.state() == v1::RUNNING && status_.tasks_size() > 1 && status_.next_task() > 0) {
    line += fmt::format("  next {}", status_.next_task() - 1);
  }
  return line;
}

std::vector<std::string> JobView::TaskLines(const Frame& frame, int rows) const {
  Table table({{"ID", Table::kRight},
               {"Task", Table::kLeft, kMinColumns},
               {"Latency", Table::kRight},
               {"Speed", Table::kRight},
               {"Speed-up", Table::kRight},
               {"Trials", Table::kRight}});
  const bool all = status_.tasks_size() <= rows - kTableHead;
  const std::vector<int> shown = TaskWindow(status_, rows - kTableHead - (all ? 0 : 1));
  int open = 0;
  for (const v1::TaskStatus& task : status_.tasks()) open += task.best_cost_s() > 0 ? 0 : 1;
  for (const int i : shown) {
    const v1::TaskStatus& task = status_.tasks(i);
    if (task.best_cost_s() <= 0) --open;
    table.AddRow({fmt::format("{}", i), TaskCell(task), LatencyCell(task.best_cost_s()),
                  SpeedCell(task.flop_count(), task.best_cost_s()),
                  SpeedUp(task.reference_cost_s(), task.best_cost_s()),
                  fmt::format("{}", task.trials())});
  }
  std::vector<std::string> lines = table.Lines(frame.columns);
  lines[0] = Colored(lines[0], Color::kBold, frame.color);
  if (!all) {
    lines.push_back(
        fmt::format("... and {} more{}", status_.tasks_size() - static_cast<int>(shown.size()),
                    open > 0 ? fmt::format(", {} of them without a result", open) : ""));
  }
  return lines;
}

std::vector<std::string> JobView::LastLines(const Frame& frame) const {
  const bool running = status_.state() == v1::QUEUED || status_.state() == v1::RUNNING;
  const double elapsed_s = status_.elapsed_s() + (running ? frame.since_event_s : 0);
  std::vector<std::string> lines = WrapParts(Totals(elapsed_s), frame.columns);
  const std::string_view spinner =
      running ? kSpinner[static_cast<size_t>(frame.number) % std::size(kSpinner)] : " ";
  if (running && !last_trial_.empty()) lines.push_back(Elide(last_trial_, frame.columns));
  lines.push_back(
      Colored(fmt::format("{} job {} {}{}", spinner, status_.id(), ActivityText(status_),
                          status_.device().empty() ? "" : " on " + status_.device()),
              Color::kDim, frame.color));
  return lines;
}

std::vector<std::string> JobView::Lines(const Frame& frame) const {
  const std::vector<std::string> last = LastLines(frame);
  const int rows = frame.rows - static_cast<int>(last.size());
  if (rows < kTableHead + 2) return last;
  std::vector<std::string> lines = TaskLines(frame, rows);
  lines.insert(lines.end(), last.begin(), last.end());
  return lines;
}

}  // namespace kiln::client
