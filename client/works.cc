#include "client/works.h"

#include <fmt/format.h>

#include <algorithm>

#include "client/wording.h"
#include "search/objective.h"

namespace kiln::client {
namespace {

std::string FormName(const v1::TaskStatus& task) {
  return task.spec().form().empty() ? "direct" : task.spec().form();
}

// Damaged numbers are taken for none.
int FirstForm(const v1::JobStatus& job, int task) {
  const v1::TaskSpec& spec = job.tasks(task).spec();
  const bool alternative =
      spec.has_alternative_of() && spec.alternative_of() < static_cast<uint32_t>(task);
  return alternative ? static_cast<int>(spec.alternative_of()) : task;
}

}  // namespace

std::vector<std::vector<int>> WorksOf(const v1::JobStatus& job) {
  std::vector<std::vector<int>> works;
  std::vector<size_t> work_of;
  for (int i = 0; i < job.tasks_size(); ++i) {
    const int first = FirstForm(job, i);
    if (first == i) works.emplace_back();
    work_of.push_back(first == i ? works.size() - 1 : work_of[static_cast<size_t>(first)]);
    works[work_of.back()].push_back(i);
  }
  return works;
}

std::vector<int> FormsOf(const v1::JobStatus& job, int task) {
  std::vector<int> forms;
  for (int i = 0; i < job.tasks_size(); ++i) {
    if (FirstForm(job, i) == FirstForm(job, task)) forms.push_back(i);
  }
  return forms;
}

int Fastest(const v1::JobStatus& job, std::span<const int> forms) {
  int fastest = forms[0];
  for (const int i : forms) {
    const double best_s = job.tasks(i).best_cost_s(), least_s = job.tasks(fastest).best_cost_s();
    if (best_s > 0 && (least_s <= 0 || best_s < least_s)) fastest = i;
  }
  return fastest;
}

std::string TaskCell(const v1::TaskStatus& task) {
  return task.spec().has_alternative_of() ? "  or " + FormName(task) : task.spec().description();
}

std::string FormText(const v1::JobStatus& job, std::span<const int> forms) {
  if (forms.size() < 2) return "";
  const v1::TaskStatus& fastest = job.tasks(Fastest(job, forms));
  std::string text = FormName(fastest);
  for (const int i : forms) {
    const v1::TaskStatus& task = job.tasks(i);
    if (&task == &fastest) continue;
    text += text.size() == FormName(fastest).size() ? ": " : ", ";
    const std::string faster = SpeedUp(task.best_cost_s(), fastest.best_cost_s());
    text += faster.empty() ? fmt::format("{} has no result", FormName(task))
                           : fmt::format("{} faster than {} ({})", faster, FormName(task),
                                         LatencyCell(task.best_cost_s()));
  }
  return text;
}

std::string FormCosts(const v1::JobStatus& job, std::span<const int> forms,
                      std::span<const double> best_s) {
  std::string text;
  for (const int i : forms) {
    const double cost_s = static_cast<size_t>(i) < best_s.size() ? best_s[i] : 0;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", FormName(job.tasks(i)),
                        LatencyCell(cost_s));
  }
  return text;
}

double ObjectiveOf(const v1::JobStatus& job) {
  std::vector<search::Work> works;
  std::vector<double> latencies_s;
  for (const std::vector<int>& forms : WorksOf(job)) {
    const v1::TaskSpec& spec = job.tasks(forms[0]).spec();
    works.push_back({std::max(spec.weight(), 0.0), spec.network()});
    latencies_s.push_back(job.tasks(Fastest(job, forms)).best_cost_s());
    if (latencies_s.back() <= 0) return 0;
  }
  if (works.empty()) return 0;
  const auto kind = search::ParseObjective(job.spec().options().objective());
  return search::MakeObjective(kind.value_or(search::ObjectiveKind::kWeightedSum), works)
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

}  // namespace kiln::client
