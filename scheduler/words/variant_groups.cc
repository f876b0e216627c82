#include "scheduler/words/variant_groups.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text/counted.h"
#include "scheduler/words/format.h"
#include "search/tuning/objective.h"

namespace kiln {
namespace {

std::string VariantName(const v1::TaskStatus& task) {
  return task.spec().variant().empty() ? "direct" : task.spec().variant();
}

// A damaged number counts as no alternative.
int FirstVariant(const v1::JobStatus& job, int task) {
  const v1::TaskSpec& spec = job.tasks(task).spec();
  const bool alternative =
      spec.has_alternative_of() && spec.alternative_of() < static_cast<uint32_t>(task);
  return alternative ? static_cast<int>(spec.alternative_of()) : task;
}

}  // namespace

std::vector<std::vector<int>> VariantGroupsOf(const v1::JobStatus& job) {
  std::vector<std::vector<int>> groups;
  std::vector<size_t> group_of;
  for (int i = 0; i < job.tasks_size(); ++i) {
    const int first = FirstVariant(job, i);
    if (first == i) groups.emplace_back();
    group_of.push_back(first == i ? groups.size() - 1 : group_of[static_cast<size_t>(first)]);
    groups[group_of.back()].push_back(i);
  }
  return groups;
}

std::vector<int> VariantsOf(const v1::JobStatus& job, int task) {
  std::vector<int> variants;
  for (int i = 0; i < job.tasks_size(); ++i) {
    if (FirstVariant(job, i) == FirstVariant(job, task)) variants.push_back(i);
  }
  return variants;
}

int Fastest(const v1::JobStatus& job, std::span<const int> variants) {
  int fastest = variants[0];
  for (const int i : variants) {
    const double best_s = job.tasks(i).best_cost_s(), least_s = job.tasks(fastest).best_cost_s();
    if (best_s > 0 && (least_s <= 0 || best_s < least_s)) fastest = i;
  }
  return fastest;
}

std::string TaskCell(const v1::TaskStatus& task) {
  return task.spec().has_alternative_of() ? "  or " + VariantName(task) : task.spec().description();
}

std::string VariantText(const v1::JobStatus& job, std::span<const int> variants) {
  if (variants.size() < 2) return "";
  const v1::TaskStatus& fastest = job.tasks(Fastest(job, variants));
  std::string text = VariantName(fastest);
  for (const int i : variants) {
    const v1::TaskStatus& task = job.tasks(i);
    if (&task == &fastest) continue;
    text += text.size() == VariantName(fastest).size() ? ": " : ", ";
    const std::string faster = SpeedUp(task.best_cost_s(), fastest.best_cost_s());
    text += faster.empty() ? fmt::format("{} has no result", VariantName(task))
                           : fmt::format("{} faster than {} ({})", faster, VariantName(task),
                                         LatencyCell(task.best_cost_s()));
  }
  return text;
}

std::string VariantCosts(const v1::JobStatus& job, std::span<const int> variants,
                         std::span<const double> best_s) {
  std::string text;
  for (const int i : variants) {
    const double cost_s = static_cast<size_t>(i) < best_s.size() ? best_s[i] : 0;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", VariantName(job.tasks(i)),
                        LatencyCell(cost_s));
  }
  return text;
}

std::string RowsText(int tasks, int rows) {
  if (rows == tasks) return Counted(rows, "row");
  return fmt::format("{}, {} of them another way to do the task above; the fastest way counts",
                     Counted(rows, "row"), rows - tasks);
}

std::optional<double> ObjectiveOf(const v1::JobStatus& job) {
  std::vector<search::VariantGroup> groups;
  std::vector<double> latencies_s;
  for (const std::vector<int>& variants : VariantGroupsOf(job)) {
    const v1::TaskSpec& spec = job.tasks(variants[0]).spec();
    groups.push_back({std::max(spec.weight(), 0.0), spec.network()});
    latencies_s.push_back(job.tasks(Fastest(job, variants)).best_cost_s());
    if (latencies_s.back() <= 0) return std::nullopt;
  }
  if (groups.empty()) return std::nullopt;
  const auto kind = search::ParseObjective(job.spec().options().objective());
  return search::MakeObjective(kind.value_or(search::ObjectiveKind::kWeightedSum), groups)
      .value(latencies_s);
}

std::string ObjectiveWord(const v1::JobStatus& job) {
  switch (search::ParseObjective(job.spec().options().objective())
              .value_or(search::ObjectiveKind::kWeightedSum)) {
    case search::ObjectiveKind::kGeometricMean:
      return "mean latency";
    case search::ObjectiveKind::kMax:
      return "largest latency";
    case search::ObjectiveKind::kWeightedSum:
      break;
  }
  return "total latency";
}

}  // namespace kiln
