#include "scheduler/words/job_estimate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "proto/job_defaults.h"
#include "scheduler/words/job_queue.h"
#include "search/tuning/estimate_phase.h"

namespace kiln {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

bool IsKnown(double seconds) { return std::isfinite(seconds); }

std::optional<double> Known(double seconds) {
  return IsKnown(seconds) ? std::optional(seconds) : std::nullopt;
}

// Returns 0 if the job has no limit of trials.
uint32_t TrialLimit(const v1::JobStatus& job) {
  const uint32_t trials = job.spec().options().trials();
  return trials >= kMaxTrials ? 0 : trials;
}

// Returns the length of a job that has not begun, at `rate` trials a second.
double LengthOf(const v1::JobStatus& job, double rate) {
  double seconds = kNever;
  const uint32_t limit = TrialLimit(job);
  if (limit > 0 && rate > 0) {
    seconds = (limit - std::min(limit, job.trials_done())) / rate;
  }
  const double budget_s = job.spec().options().time_budget_s();
  return budget_s > 0 ? std::min(seconds, budget_s) : seconds;
}

// Returns the mean pace of the jobs that have one; 0 = none has.
double MeanPace(const std::vector<const v1::JobStatus*>& running) {
  double sum = 0;
  int jobs = 0;
  for (const v1::JobStatus* const job : running) {
    if (job->trials_per_s_last_minute() <= 0) continue;
    sum += job->trials_per_s_last_minute();
    ++jobs;
  }
  return jobs > 0 ? sum / jobs : 0;
}

// Returns "a few seconds", "40 s", "12 min", "3 h", "2 days".
std::string AboutText(double seconds) {
  if (seconds < 10) return "a few seconds";
  if (seconds < 90) return fmt::format("about {:.0f} s", 10 * std::round(seconds / 10));
  if (seconds < 90 * 60) return fmt::format("about {:.0f} min", seconds / 60);
  if (seconds < 48 * 3600) return fmt::format("about {:.0f} h", seconds / 3600);
  return fmt::format("about {:.0f} days", seconds / 86400);
}

// Tells whether jobs of other users wait with the same priority. Their turn depends on what the
// users have had, which the jobs do not tell.
bool HasRivals(const v1::JobStatus& job, const std::vector<v1::JobStatus>& all) {
  return std::ranges::any_of(all, [&](const v1::JobStatus& other) {
    return WaitsForTurn(other) && other.spec().priority() == job.spec().priority() &&
           other.spec().user() != job.spec().user();
  });
}

}  // namespace

std::optional<double> SecondsToEnd(const v1::JobStatus& job) {
  const bool searches = job.phase().empty() || IsEstimatePhase(job.phase());
  if (job.state() != v1::RUNNING || job.waiting_for_workers() != 0 || !searches ||
      job.ending() != v1::ENDING_UNSPECIFIED) {
    return std::nullopt;
  }
  double seconds = kNever;
  const uint32_t limit = TrialLimit(job);
  const double rate = job.trials_per_s_last_minute();
  if (limit > job.trials_done() && rate > 0) seconds = (limit - job.trials_done()) / rate;
  const double budget_s = job.spec().options().time_budget_s();
  if (budget_s > 0) seconds = std::min(seconds, std::max(0.0, budget_s - job.elapsed_s()));
  return Known(seconds);
}

std::optional<double> SecondsToStart(const v1::JobStatus& job,
                                     const std::vector<v1::JobStatus>& all) {
  if (!WaitsForTurn(job) || HasRivals(job, all)) return std::nullopt;
  const std::vector<const v1::JobStatus*> running = RunningJobs(all);
  // The time at which each place becomes free.
  std::vector<double> free_s;
  for (const v1::JobStatus* const one : running) {
    free_s.push_back(SecondsToEnd(*one).value_or(kNever));
  }
  if (free_s.empty()) return std::nullopt;
  const double pace = MeanPace(running);
  for (const v1::JobStatus* const earlier : JobsBefore(job, all)) {
    *std::ranges::min_element(free_s) += LengthOf(*earlier, pace);
  }
  return Known(*std::ranges::min_element(free_s));
}

std::optional<double> SecondsToDevice(const v1::JobStatus& job,
                                      const std::vector<const v1::JobStatus*>& holders) {
  double seconds = kNever;
  for (const v1::JobStatus* const holder : holders) {
    if (holder->spec().priority() <= job.spec().priority()) return std::nullopt;
    seconds = std::min(seconds, SecondsToEnd(*holder).value_or(kNever));
  }
  return Known(seconds);
}

std::string EndsText(std::optional<double> seconds) {
  return seconds.has_value() ? "ends in " + AboutText(*seconds) : "";
}

std::string StartsText(std::optional<double> seconds) {
  return seconds.has_value() ? "starts in " + AboutText(*seconds) : "";
}

}  // namespace kiln
