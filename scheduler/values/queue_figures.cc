#include "scheduler/values/queue_figures.h"

#include <iterator>
#include <map>
#include <utility>

namespace kiln::scheduler {

std::shared_ptr<void> QueueFigures::Add(std::function<Sizes()> read) {
  const std::lock_guard lock(mutex_);
  jobs_.push_back(std::move(read));
  return {&jobs_.back(), [this, place = std::prev(jobs_.end())](void*) {
            const std::lock_guard lock(mutex_);
            jobs_.erase(place);
          }};
}

void QueueFigures::Collect(MetricSheet& sheet) const {
  std::map<std::string, Sizes> targets;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& read : jobs_) {
      const Sizes of_job = read();
      Sizes& sum = targets[of_job.target.substr(0, of_job.target.find(' '))];
      sum.build += of_job.build;
      sum.run += of_job.run;
    }
  }
  for (const auto& [target, sizes] : targets) {
    const auto show = [&](const char* stage, size_t size) {
      sheet.Gauge("kiln_queue_items", "Trials that wait for a worker, by stage.",
                  static_cast<double>(size), {{"stage", stage}, {"target", target}});
    };
    show("build", sizes.build);
    show("run", sizes.run);
  }
}

}  // namespace kiln::scheduler
