// A cluster and a farm that a test moves by hand, for tests of a fleet.
#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "client/fleet/farm_queue.h"
#include "client/fleet/fleet_view.h"
#include "client/fleet/slurm_cluster.h"
#include "rpc/asked_by.h"

namespace kiln::client {

// Jobs wait until a test runs them.
class FakeSlurmCluster : public SlurmCluster {
 public:
  StatusOr<int64_t> Submit(const SlurmJobRequest& request) override {
    if (!refusal.ok()) return refusal;
    const int64_t id = next_id_++;
    jobs[id] = {id, SlurmJobState::kPending, request.name, "Resources"};
    return id;
  }
  StatusOr<std::vector<SlurmJob>> List(const std::vector<std::string>& names) override {
    if (!trouble.ok()) return trouble;
    std::vector<SlurmJob> listed;
    for (const auto& [id, job] : jobs) {
      if (std::ranges::count(names, job.name) > 0) listed.push_back(job);
    }
    return listed;
  }
  Status Cancel(const std::vector<int64_t>& ids) override {
    if (!trouble.ok()) return trouble;
    for (const int64_t id : ids) {
      cancelled.push_back(id);
      jobs.erase(id);
    }
    return OkStatus();
  }

  void Set(int64_t id, SlurmJobState state) {
    jobs[id].state = state;
    jobs[id].detail = state == SlurmJobState::kPending ? "Resources" : "node1";
  }
  void RunAll() {
    for (const auto& [id, job] : std::map(jobs)) Set(id, SlurmJobState::kRunning);
  }

  std::map<int64_t, SlurmJob> jobs;
  std::vector<int64_t> cancelled;
  // Answers of Submit, and of the other calls.
  Status refusal, trouble;

 private:
  int64_t next_id_ = 1;
};

// The running jobs of a cluster are workers with one slot of a farm whose jobs want `wanted` slots.
class FakeFarmQueue : public FarmQueue {
 public:
  FakeFarmQueue(const FakeSlurmCluster& cluster, std::string fleet)
      : cluster_(cluster), fleet_(std::move(fleet)) {}

  StatusOr<v1::ListReply> List() override {
    if (!trouble.ok()) return trouble;
    v1::ListReply reply;
    int left = wanted;
    for (const auto& [id, job] : cluster_.jobs) {
      if (job.state != SlurmJobState::kRunning || silent.contains(id)) continue;
      v1::WorkerState& worker = *reply.add_workers();
      worker.set_id("w." + NameOf(id));
      worker.set_kind(job.name.ends_with("runner") ? v1::RUNNER : v1::BUILDER);
      worker.set_slots(1);
      worker.add_keys("null");
      const auto asked = modes.find(id);
      if (asked != modes.end()) {
        worker.set_asked_mode(asked->second.first);
        worker.set_asked_by(asked->second.second);
      }
      const bool serves = worker.asked_mode() == v1::WORKER_SERVES && left > 0;
      if (serves) --left;
      reply.add_busy_slots(serves || held.contains(id) ? 1 : 0);
    }
    v1::KeyState& row = *reply.add_keys();
    row.set_key("null");
    row.set_kind(v1::RUNNER);
    row.set_pending(static_cast<uint32_t>(left));
    return reply;
  }
  Status SetMode(const std::string& worker_id, v1::WorkerMode mode,
                 const std::string& why) override {
    if (!mode_trouble.ok()) return mode_trouble;
    const auto job = SlurmJobOf(worker_id, fleet_);
    modes[job.value_or(0)] = {mode, PrintAskedBy({.name = "ada", .why = why})};
    return OkStatus();
  }

  int wanted = 0;
  // Jobs whose workers do not announce themselves, and jobs whose workers have a trial in hand
  // whatever their mode.
  std::set<int64_t> silent, held;
  std::map<int64_t, std::pair<v1::WorkerMode, std::string>> modes;
  Status trouble, mode_trouble;

 private:
  std::string NameOf(int64_t id) const { return "kiln-" + fleet_ + "-" + std::to_string(id); }

  const FakeSlurmCluster& cluster_;
  const std::string fleet_;
};

}  // namespace kiln::client
