#include "scheduler/words/job_queue.h"

#include <fmt/format.h>

#include <algorithm>

namespace kiln {

bool WaitsForProcess(const v1::JobStatus& job) {
  // A queued job has a phase only while its process is not there.
  return job.state() == v1::QUEUED && job.spec().has_served() && !job.phase().empty();
}

bool WaitsForResults(const v1::JobStatus& job) {
  return job.state() == v1::QUEUED &&
         std::ranges::any_of(
             job.tasks(), [](const v1::TaskStatus& task) { return !task.tuned_by_job().empty(); });
}

std::string TunedByText(const v1::JobStatus& job, int task) {
  const std::string& tuner = job.tasks(task).tuned_by_job();
  if (job.state() != v1::RUNNING || tuner.empty()) return "";
  const std::string& name = job.tasks(task).spec().description();
  return fmt::format("job {} tunes {}: its results are taken", tuner,
                     name.empty() ? fmt::format("task {}", task) : name);
}

bool WaitsForTurn(const v1::JobStatus& job) {
  return job.state() == v1::QUEUED && !WaitsForProcess(job) && !WaitsForResults(job);
}

std::vector<const v1::JobStatus*> JobsBefore(const v1::JobStatus& job,
                                             const std::vector<v1::JobStatus>& all) {
  std::vector<const v1::JobStatus*> before;
  bool older = false;
  for (const v1::JobStatus& other : all) {
    if (other.id() == job.id()) {
      older = true;
      continue;
    }
    if (!WaitsForTurn(other)) continue;
    const int32_t theirs = other.spec().priority(), ours = job.spec().priority();
    if (theirs > ours || (theirs == ours && older)) before.push_back(&other);
  }
  std::reverse(before.begin(), before.end());
  std::ranges::stable_sort(before, [](const v1::JobStatus* a, const v1::JobStatus* b) {
    return a->spec().priority() > b->spec().priority();
  });
  return before;
}

std::vector<const v1::JobStatus*> RunningJobs(const std::vector<v1::JobStatus>& all) {
  std::vector<const v1::JobStatus*> running;
  for (const v1::JobStatus& job : all) {
    if (job.state() == v1::RUNNING) running.push_back(&job);
  }
  return running;
}

}  // namespace kiln
