#include "client/view/task_window.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "scheduler/words/variant_groups.h"

namespace kiln::client {
namespace {

using Groups = std::vector<std::vector<int>>;

// Returns the groups' indices ordered by `value` of their fastest variants, the largest first.
std::vector<size_t> Sorted(const v1::JobStatus& job, const Groups& groups,
                           const std::function<double(const v1::TaskStatus&)>& value) {
  std::vector<double> values;
  for (const std::vector<int>& group : groups)
    values.push_back(value(job.tasks(Fastest(job, group))));
  std::vector<size_t> order(groups.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return values[a] > values[b]; });
  return order;
}

// Returns every group at least once.
std::vector<size_t> SortedByInterest(const v1::JobStatus& job, const Groups& groups) {
  const auto slowest = Sorted(job, groups, [](const v1::TaskStatus& task) {
    return task.spec().weight() * task.best_cost_s();
  });
  const auto most_gained = Sorted(job, groups, [](const v1::TaskStatus& task) {
    return task.best_cost_s() > 0 ? task.reference_cost_s() / task.best_cost_s() : 0;
  });
  std::vector<size_t> order;
  for (size_t i = 0; i < groups.size(); ++i) {
    const std::vector<int>& group = groups[i];
    const auto in_hand = static_cast<int>(job.next_task()) - 1;
    if (std::find(group.begin(), group.end(), in_hand) != group.end()) order.push_back(i);
  }
  for (size_t i = 0; i < groups.size(); ++i) {
    order.push_back(slowest[i]);
    order.push_back(most_gained[i]);
  }
  return order;
}

}  // namespace

std::vector<int> TaskWindow(const v1::JobStatus& job, int rows) {
  std::vector<int> shown;
  if (job.tasks_size() <= rows) {
    shown.resize(static_cast<size_t>(job.tasks_size()));
    std::iota(shown.begin(), shown.end(), 0);
    return shown;
  }
  const Groups groups = VariantGroupsOf(job);
  std::vector<bool> taken(groups.size());
  for (const size_t i : SortedByInterest(job, groups)) {
    if (taken[i] || static_cast<int>(shown.size() + groups[i].size()) > rows) continue;
    taken[i] = true;
    shown.insert(shown.end(), groups[i].begin(), groups[i].end());
  }
  std::sort(shown.begin(), shown.end());
  return shown;
}

}  // namespace kiln::client
