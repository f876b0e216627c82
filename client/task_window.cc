#include "client/task_window.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "client/works.h"

namespace kiln::client {
namespace {

using Works = std::vector<std::vector<int>>;

// Indices of works by what `value` says of their fastest forms, largest first.
std::vector<size_t> Sorted(const v1::JobStatus& job, const Works& works,
                           const std::function<double(const v1::TaskStatus&)>& value) {
  std::vector<double> values;
  for (const std::vector<int>& work : works) values.push_back(value(job.tasks(Fastest(job, work))));
  std::vector<size_t> order(works.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return values[a] > values[b]; });
  return order;
}

// Every work at least once.
std::vector<size_t> MostTellingFirst(const v1::JobStatus& job, const Works& works) {
  const auto slowest = Sorted(job, works, [](const v1::TaskStatus& task) {
    return task.spec().weight() * task.best_cost_s();
  });
  const auto most_gained = Sorted(job, works, [](const v1::TaskStatus& task) {
    return task.best_cost_s() > 0 ? task.reference_cost_s() / task.best_cost_s() : 0;
  });
  std::vector<size_t> order;
  for (size_t i = 0; i < works.size(); ++i) {
    const std::vector<int>& work = works[i];
    const auto in_hand = static_cast<int>(job.next_task()) - 1;
    if (std::find(work.begin(), work.end(), in_hand) != work.end()) order.push_back(i);
  }
  for (size_t i = 0; i < works.size(); ++i) {
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
  const Works works = WorksOf(job);
  std::vector<bool> taken(works.size());
  for (const size_t i : MostTellingFirst(job, works)) {
    if (taken[i] || static_cast<int>(shown.size() + works[i].size()) > rows) continue;
    taken[i] = true;
    shown.insert(shown.end(), works[i].begin(), works[i].end());
  }
  std::sort(shown.begin(), shown.end());
  return shown;
}

}  // namespace kiln::client
