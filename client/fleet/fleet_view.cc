#include "client/fleet/fleet_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "rpc/asked_by.h"

namespace kiln::client {
namespace {

// Sums over the workers of a Slurm job.
struct Workers {
  int count = 0;
  int draining = 0;
  int stopped = 0;
  int busy = 0;
};

// Tells whether the fleet itself has asked the worker to drain.
bool IsDrainedBy(std::string_view fleet, const v1::WorkerState& worker) {
  return worker.asked_mode() == v1::WORKER_DRAINS &&
         ParseAskedBy(worker.asked_by()).why == DrainReason(fleet);
}

void Count(std::string_view fleet, const v1::WorkerState& worker, int busy, Workers& workers) {
  ++workers.count;
  workers.busy += busy;
  if (IsDrainedBy(fleet, worker)) {
    ++workers.draining;
  } else if (worker.asked_mode() != v1::WORKER_SERVES) {
    ++workers.stopped;
  }
}

FleetWorkerState StateOf(const Workers& workers) {
  if (workers.count == 0) return FleetWorkerState::kAbsent;
  if (workers.draining == workers.count) return FleetWorkerState::kDrains;
  if (workers.draining + workers.stopped == workers.count) return FleetWorkerState::kStopped;
  return FleetWorkerState::kServes;
}

// Tells whether a runner of a device may have the key, as far as the key itself says.
bool FitsDevice(std::string_view key, std::string_view device) {
  // A GPU may be asked for by its name or UUID.
  const bool of_gpu =
      key.starts_with("cuda") || key.starts_with("NVIDIA") || key.starts_with("GPU-");
  if (device == "cuda") return of_gpu;
  if (device == "null") return key == "null";
  return !of_gpu && key != "null";
}

}  // namespace

std::string SlurmJobName(std::string_view fleet, v1::WorkerKind kind) {
  return fmt::format("kiln-{}-{}", fleet, kind == v1::RUNNER ? "runner" : "builder");
}

std::optional<int64_t> SlurmJobOf(std::string_view worker_id, std::string_view fleet) {
  const std::string prefix = fmt::format("kiln-{}-", fleet);
  std::string_view name = worker_id.substr(worker_id.rfind('.') + 1);
  if (!name.starts_with(prefix)) return std::nullopt;
  name.remove_prefix(prefix.size());
  int64_t job = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), job);
  if (error != std::errc() || end != name.data() + name.size() || job <= 0) return std::nullopt;
  return job;
}

std::string DrainReason(std::string_view fleet) {
  return fmt::format("the fleet {} shrinks", fleet);
}

bool FleetKeys::Serve(std::string_view key) const {
  if (!named.empty()) return std::ranges::find(named, key) != named.end();
  if (!announced.empty()) return announced.contains(std::string(key));
  return device.empty() || FitsDevice(key, device);
}

FleetView ViewFleet(std::string_view fleet, v1::WorkerKind kind, const v1::ListReply& farm,
                    const std::vector<SlurmJob>& jobs, const FleetKeys& keys) {
  FleetView view;
  view.announced = keys.announced;
  std::map<int64_t, Workers> workers;
  for (int i = 0; i < farm.workers_size(); ++i) {
    const v1::WorkerState& worker = farm.workers(i);
    const std::optional<int64_t> job = SlurmJobOf(worker.id(), fleet);
    if (worker.kind() != kind || !job.has_value()) continue;
    const int busy = i < farm.busy_slots_size() ? static_cast<int>(farm.busy_slots(i)) : 0;
    Count(fleet, worker, busy, workers[*job]);
    // Work that a worker ends in its drain is no reason to start another.
    if (worker.asked_mode() == v1::WORKER_SERVES) view.wanted_slots += busy;
    view.announced.insert(worker.keys().begin(), worker.keys().end());
  }
  const FleetKeys known = {keys.named, keys.device, view.announced};
  for (const v1::KeyState& key : farm.keys()) {
    if (key.kind() == kind && known.Serve(key.key())) {
      view.wanted_slots += static_cast<int>(key.pending());
    }
  }
  const std::string name = SlurmJobName(fleet, kind);
  for (const SlurmJob& job : jobs) {
    if (job.name != name) continue;
    const Workers& found = workers[job.id];
    view.jobs.push_back(
        {.id = job.id, .state = job.state, .workers = StateOf(found), .busy_slots = found.busy});
  }
  return view;
}

std::vector<std::string> WorkersOfJob(std::string_view fleet, int64_t job,
                                      const v1::ListReply& farm) {
  std::vector<std::string> ids;
  for (const v1::WorkerState& worker : farm.workers()) {
    if (SlurmJobOf(worker.id(), fleet) == job) ids.push_back(worker.id());
  }
  return ids;
}

}  // namespace kiln::client
