#include "scheduler/words/format.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <vector>

#include "absl/time/civil_time.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/text/counted.h"
#include "base/text/units.h"
#include "compiler/target/target.h"
#include "proto/job_defaults.h"

namespace kiln {

std::string_view ErrorName(uint32_t kind) {
  constexpr std::string_view kNames[] = {"ok",
                                         "bad schedule",
                                         "compile error",
                                         "load error",
                                         "crash",
                                         "wrong answer",
                                         "build timeout",
                                         "run timeout",
                                         "gave up (workers vanished)"};
  return kind < std::size(kNames) ? kNames[kind] : "unknown error";
}

std::string_view JobStateName(v1::JobState state) {
  constexpr std::string_view kNames[] = {"unknown", "queued",    "running", "succeeded",
                                         "failed",  "cancelled", "paused"};
  const auto i = static_cast<size_t>(state);
  return i < std::size(kNames) ? kNames[i] : "unknown";
}

std::string_view WorkerKindName(v1::WorkerKind kind) {
  if (kind == v1::BUILDER) return "builder";
  return kind == v1::RUNNER ? "runner" : "unknown";
}

uint32_t NumErrors(const v1::JobStatus& job) {
  uint32_t count = 0;
  for (const auto& [kind, trials] : job.error_counts()) {
    if (kind != v1::NO_ERROR) count += trials;
  }
  return count;
}

std::string ErrorCounts(const v1::JobStatus& job) {
  std::map<uint32_t, uint32_t> by_kind(job.error_counts().begin(), job.error_counts().end());
  by_kind.erase(v1::NO_ERROR);
  std::string list;
  for (const auto& [kind, trials] : by_kind) {
    if (trials == 0) continue;
    list += fmt::format("{}{} {}", list.empty() ? "" : ", ", trials, ErrorName(kind));
  }
  if (list.empty()) return "0";
  return fmt::format("{} ({})", NumErrors(job), list);
}

double MeanCost(const v1::TrialResult& result) {
  if (result.error() != v1::NO_ERROR || result.costs_s().empty()) return 0;
  double sum = 0;
  for (double cost : result.costs_s()) sum += cost;
  return sum / result.costs_s_size();
}

double CostOf(const v1::TrialResult& result) {
  if (result.error() != v1::NO_ERROR || result.remeasured_costs_s().empty())
    return MeanCost(result);
  std::vector<double> sorted(result.remeasured_costs_s().begin(),
                             result.remeasured_costs_s().end());
  std::sort(sorted.begin(), sorted.end());
  const size_t middle = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

std::string ShareCell(double share) {
  return share > 0 ? fmt::format("{:.0f}%", 100 * share) : "-";
}

std::string LimitsText(const v1::TuneOptions& options) {
  const std::string trials = Counted(options.trials(), "trial");
  if (options.time_budget_s() <= 0) return trials;
  const std::string time = fmt::format("{:.4g} minute{}", options.time_budget_s() / 60,
                                       options.time_budget_s() == 60 ? "" : "s");
  return options.trials() >= kMaxTrials ? time : trials + " or " + time;
}

std::string TrialsText(const v1::JobStatus& job) {
  const uint32_t wanted = job.spec().options().trials();
  if (wanted == 0 || wanted >= kMaxTrials) return fmt::format("{}", job.trials_done());
  return fmt::format("{}/{}", job.trials_done(), wanted);
}

double ProgressOf(const v1::JobStatus& job) {
  const v1::TuneOptions& options = job.spec().options();
  const double of_trials = 1.0 * job.trials_done() / std::max(1u, options.trials());
  const double budget_s = options.time_budget_s();
  return std::min(1.0, std::max(of_trials, budget_s > 0 ? job.elapsed_s() / budget_s : 0));
}

std::string EndingText(const v1::JobStatus& job) {
  const std::string after = "after " + Counted(job.trials_done(), "trial");
  switch (job.ending()) {
    case v1::TRIALS_USED_UP:
      return fmt::format("{} {} done", Counted(job.trials_done(), "trial"),
                         IsOrAre(job.trials_done()));
    case v1::TARGET_REACHED:
      return fmt::format("the latency target is reached, {}", after);
    case v1::NO_IMPROVEMENT:
      return fmt::format("nothing improved for too long (early stopping), {}", after);
    case v1::SPACE_EXHAUSTED:
      return fmt::format("no candidates are left that would help, {}", after);
    case v1::TIME_USED_UP:
      return fmt::format("the time is used up, {}", after);
    case v1::CANCELLED_BY_REQUEST:
      return fmt::format("cancelled, {}", after);
    default:
      return {};
  }
}

std::string PaceText(const v1::JobStatus& job) {
  const bool running = job.state() == v1::RUNNING && job.trials_per_s_last_minute() > 0;
  const double over_all = job.elapsed_s() > 0 ? job.trials_done() / job.elapsed_s() : 0;
  const double rate = running ? job.trials_per_s_last_minute() : over_all;
  if (rate <= 0) return {};
  std::string text = fmt::format("{:.3g} trials/s", rate);
  const double share = running ? job.busy_share_last_minute() : job.busy_share();
  // No program was run: the target is null.
  if (share < 0.005) return text;
  text +=
      fmt::format("  measuring {} of the {}", ShareCell(share), running ? "last minute" : "time");
  const double elites = running ? job.elites_share_last_minute() : job.elites_share();
  if (elites >= 0.005) text += fmt::format(" ({} the best candidates again)", ShareCell(elites));
  return text;
}

int RemeasurementsOf(const v1::TrialResult& result) {
  const auto said = static_cast<int>(result.remeasurements());
  return said > 0 ? said : result.remeasured_costs_s_size();
}

std::string LatencyCell(double cost_s) { return cost_s > 0 ? FormatSeconds(cost_s) : "-"; }

std::string SpeedCell(double flop_count, double cost_s) {
  return cost_s > 0 && flop_count > 0 ? FormatFlops(flop_count / cost_s) : "-";
}

std::string ErrorCell(const v1::TrialResult& result) {
  return result.unchecked().empty() ? fmt::format("{:.1e}", result.max_error()) : "unchecked";
}

std::string MarkText(const v1::Record& record) {
  if (record.mark().empty()) return "";
  return fmt::format("its device was slower than usual, {}", record.mark());
}

std::string UncheckedText(const v1::TrialResult& result) {
  if (result.unchecked().empty()) return "";
  return fmt::format(
      "{}, whatever the program does right or wrong; give inputs that it can tell by: "
      "--input-range NAME=LOW:HIGH",
      result.unchecked());
}

std::string SpeedUp(double reference_s, double cost_s) {
  if (reference_s <= 0 || cost_s <= 0) return {};
  const double ratio = reference_s / cost_s;
  return fmt::format("{:.{}f}x", ratio, ratio < 10 ? 2 : ratio < 100 ? 1 : 0);
}

std::string SpeedUpText(const v1::TaskStatus& task, const v1::Record& best,
                        std::string_view reference) {
  if (task.reference_record_id() != 0 && task.reference_record_id() == best.id()) {
    return fmt::format("none: nothing that was tried is faster than {}", reference);
  }
  const std::string ratio = SpeedUp(task.reference_cost_s(), CostOf(best.result()));
  // The reference is the loops.
  const bool several = reference.ends_with('s');
  if (ratio.empty() && best.result().sampled_outputs() > 0) {
    return fmt::format("not known: {} {} longer than --reference-limit", reference,
                       several ? "take" : "takes");
  }
  if (ratio.empty()) {
    return fmt::format("not known: {} {} not measured", reference, several ? "were" : "was");
  }
  const std::string& remark = task.reference_message();
  return fmt::format("{} over {} ({}{}{})", ratio, reference,
                     FormatSeconds(task.reference_cost_s()), remark.empty() ? "" : ", ", remark);
}

std::string KnownText(const v1::TaskStatus& task) {
  std::string text = task.known_states() == 1
                         ? "1 state is known of earlier jobs"
                         : fmt::format("{} states are known of earlier jobs", task.known_states());
  if (task.known_record_id() == 0) return text + ", none worked";
  return text + fmt::format(", the best {} (record {})", LatencyCell(task.known_cost_s()),
                            task.known_record_id());
}

std::string ShortTarget(std::string_view text) {
  const auto target = target::ParseTarget(text);
  if (!target.ok()) return std::string(text);
  std::string name(target->kind->name);
  const std::string processor = target->Option(target->kind->processor_option);
  if (!processor.empty()) name += " " + processor;
  const std::string features = target->Option("mattr");
  if (features.empty()) return name;
  const auto count = 1 + std::count(features.begin(), features.end(), ',');
  return name + fmt::format(", {} feature{}", count, count == 1 ? "" : "s");
}

std::string BriefTarget(std::string_view text) {
  const auto target = target::ParseTarget(text);
  if (!target.ok()) return std::string(text);
  const std::string processor = target->Option(target->kind->processor_option);
  return fmt::format("{}{}{}", target->kind->name, processor.empty() ? "" : " ", processor);
}

std::string TrialName(const v1::Record& record) {
  return fmt::format("{}/{}", record.job_id(), record.trial());
}

std::optional<NamedTrial> ParseTrialName(std::string_view text) {
  const size_t slash = text.find('/');
  if (slash == std::string_view::npos || slash == 0) return {};
  NamedTrial trial{std::string(text.substr(0, slash))};
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data() + slash + 1, end, trial.number);
  if (error != std::errc() || at != end) return {};
  return trial;
}

std::string TimeText(int64_t unix_s) {
  if (unix_s <= 0) return "-";
  return absl::FormatTime("%Y-%m-%d %H:%M:%S", absl::FromUnixSeconds(unix_s),
                          absl::LocalTimeZone());
}

std::string ShortTimeText(int64_t unix_s) {
  if (unix_s <= 0) return "-";
  const absl::TimeZone zone = absl::LocalTimeZone();
  const absl::Time time = absl::FromUnixSeconds(unix_s);
  const bool this_year = absl::ToCivilYear(time, zone) == absl::ToCivilYear(absl::Now(), zone);
  return absl::FormatTime(this_year ? "%m-%d %H:%M" : "%Y-%m-%d", time, zone);
}

}  // namespace kiln
