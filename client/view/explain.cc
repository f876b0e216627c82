#include "client/view/explain.h"

#include <fmt/format.h>

#include <cmath>

#include "base/text/counted.h"
#include "base/text/units.h"
#include "client/view/kernel_values.h"
#include "scheduler/words/format.h"
#include "scheduler/words/variant_groups.h"

namespace kiln::client {
namespace {

std::string Milliseconds(double seconds, std::string_view none) {
  return seconds > 0 ? fmt::format("{:.3f}", 1e3 * seconds) : std::string(none);
}

// Models that estimate times give minus the seconds as a score.
std::string Prediction(double score) {
  if (!std::isfinite(score)) return "no score";
  return score < 0 ? "predicted " + LatencyCell(-score) : fmt::format("score {:.3g}", score);
}

}  // namespace

std::string ExplainTrial(const v1::Record& record) {
  const bool failed = record.result().error() != v1::NO_ERROR;
  std::string line = fmt::format("trial {:>4}  {:>10}", record.trial(),
                                 failed ? std::string(ErrorName(record.result().error()))
                                        : LatencyCell(CostOf(record.result())));
  line += "  " + Prediction(record.score());
  if (!record.origin().empty()) line += "  " + record.origin();
  if (const std::string values = KernelValues(record.steps()); !values.empty())
    line += "  " + values;
  return line;
}

std::vector<std::string> ExplainRound(const v1::Round& round, const v1::JobStatus& job) {
  const int task = static_cast<int>(round.task_index());
  std::string head = fmt::format("round {}: task {}", round.number(), task);
  if (task < job.tasks_size()) head += fmt::format(" ({})", job.tasks(task).spec().description());
  head += fmt::format(", search {}, {} so far", FormatSeconds(round.search_s()),
                      Counted(round.trials(), "trial"));
  std::vector<std::string> lines = {std::move(head)};
  if (task < job.tasks_size()) {
    const std::vector<int> variants = VariantsOf(job, task);
    const std::vector<double> best_s(round.best_s().begin(), round.best_s().end());
    if (variants.size() > 1) lines.push_back("  variants: " + VariantCosts(job, variants, best_s));
  }
  std::string_view report = round.report();
  while (!report.empty()) {
    const size_t end = std::min(report.find('\n'), report.size());
    if (end > 0) lines.push_back("  " + std::string(report.substr(0, end)));
    report.remove_prefix(std::min(end + 1, report.size()));
  }
  return lines;
}

std::string LatencyLogLine(const v1::Round& round) {
  std::string line = fmt::format(
      "ElapsedTime(s)\t{:.0f}\tEstimatedLatency(ms)\t{}\tTrials\t{}\tTask\t{}\tBest(ms)",
      round.elapsed_s(), Milliseconds(round.total_latency_s(), "N/A"), round.trials(),
      round.task_index());
  for (const double best_s : round.best_s()) line += "\t" + Milliseconds(best_s, "-");
  return line + "\n";
}

}  // namespace kiln::client
