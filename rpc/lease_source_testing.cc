#include "rpc/lease_source_testing.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <vector>

namespace kiln {

struct FakeLeaseSource::Core {
  struct Held {
    std::string worker_id;
    std::shared_ptr<LeasedWorker::Signals> signals;
  };

  // The caller holds the lock.
  const v1::WorkerState* FindFree(const std::vector<std::string>& avoid) const {
    for (const auto& [id, worker] : workers) {
      if (std::find(avoid.begin(), avoid.end(), id) != avoid.end()) continue;
      const auto busy = std::count_if(held.begin(), held.end(), [&id = id](const auto& entry) {
        return entry.second.worker_id == id;
      });
      if (busy < worker.slots()) return &worker;
    }
    return nullptr;
  }

  mutable std::mutex mutex;
  std::condition_variable changed;
  std::map<std::string, v1::WorkerState> workers;
  // Keyed by lease id.
  std::map<std::string, Held> held;
  int acquired = 0;
};

FakeLeaseSource::FakeLeaseSource() : core_(std::make_shared<Core>()) {}
FakeLeaseSource::~FakeLeaseSource() = default;

void FakeLeaseSource::AddWorker(v1::WorkerState worker) {
  std::lock_guard lock(core_->mutex);
  KILN_CHECK(core_->workers.count(worker.id()) == 0, "worker {} twice", worker.id());
  core_->workers[worker.id()] = std::move(worker);
  core_->changed.notify_all();
}

void FakeLeaseSource::RemoveWorker(const std::string& id) {
  std::vector<std::shared_ptr<LeasedWorker::Signals>> lost;
  {
    std::lock_guard lock(core_->mutex);
    core_->workers.erase(id);
    std::erase_if(core_->held, [&](const auto& entry) {
      if (entry.second.worker_id != id) return false;
      lost.push_back(entry.second.signals);
      return true;
    });
  }
  for (const auto& signals : lost) signals->lost.request_stop();
}

void FakeLeaseSource::Want(const std::string& id, bool wanted) {
  std::lock_guard lock(core_->mutex);
  for (auto& [lease_id, held] : core_->held) {
    if (held.worker_id == id) held.signals->wanted = wanted;
  }
}

int FakeLeaseSource::held() const {
  std::lock_guard lock(core_->mutex);
  return static_cast<int>(core_->held.size());
}

int FakeLeaseSource::acquired() const {
  std::lock_guard lock(core_->mutex);
  return core_->acquired;
}

StatusOr<LeasedWorker> FakeLeaseSource::Acquire(absl::Duration timeout, std::stop_token stop,
                                                const std::vector<std::string>& avoid) {
  const std::shared_ptr<Core> core = core_;
  const std::stop_callback on_stop(stop, [core] {
    std::lock_guard lock(core->mutex);
    core->changed.notify_all();
  });
  const auto until =
      std::chrono::steady_clock::now() +
      absl::ToChronoMilliseconds(std::clamp(timeout, absl::ZeroDuration(), absl::Hours(24)));
  std::unique_lock lock(core->mutex);
  core->changed.wait_until(
      lock, until, [&] { return stop.stop_requested() || core->FindFree(avoid) != nullptr; });
  if (stop.stop_requested()) return Cancelled("stopped while waiting for a worker");
  const v1::WorkerState* worker = core->FindFree(avoid);
  if (worker == nullptr) return DeadlineExceeded("no fake worker is free");
  v1::Lease lease;
  lease.set_id(fmt::format("fake-{}", ++core->acquired));
  *lease.mutable_worker() = *worker;
  auto signals = std::make_shared<LeasedWorker::Signals>();
  core->held[lease.id()] = {worker->id(), signals};
  auto let_go = [core, id = lease.id()] {
    std::lock_guard lock(core->mutex);
    core->held.erase(id);
    core->changed.notify_all();
  };
  return LeasedWorker(std::move(lease), std::move(signals), std::move(let_go));
}

}  // namespace kiln
