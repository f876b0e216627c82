// Builds in warm child processes, a limited number at a time. Further calls wait in order of
// arrival.
//
// A build that goes wrong costs its own trial and at most one child. Children are started as they
// are needed, always one ahead, and are replaced after many builds or when they have grown.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "builder/build_executor.h"
#include "builder/child_process.h"
#include "proto/job_defaults.h"

namespace kiln::builder {

struct PoolOptions {
  // argv of a child.
  std::vector<std::string> child_command;
  // Number of builds at a time.
  int jobs = 1;
  // Defaults for requests that name no limit.
  uint32_t timeout_ms = kDefaultBuildTimeoutMs;
  uint64_t memory_limit_bytes = uint64_t{4} << 30;
  // A child is replaced after this many builds, or when it keeps this much memory.
  int max_builds = 500;
  int64_t max_child_bytes = int64_t{512} << 20;
  size_t max_waiting = 4096;
};

class Pool : public BuildExecutor {
 public:
  explicit Pool(PoolOptions options);
  // No call may be running.
  ~Pool() override;

  StatusOr<BuildOutcome> Build(const v1::BuildRequest& request,
                               const std::function<bool()>& cancelled) override;

  struct Stats {
    uint64_t children_started = 0;
    // Children that died, were killed for their time, or were cancelled.
    uint64_t children_lost = 0;
    // Children replaced after many builds, or because they had grown.
    uint64_t children_replaced = 0;
  };
  Stats stats() const;
  // Returns the pids of the children that wait for work.
  std::vector<pid_t> IdlePids();

 private:
  class Place;
  using Child = std::unique_ptr<ChildProcess>;

  StatusOr<ChildOutcome> RunInChild(const v1::BuildRequest& request,
                                    const std::function<bool()>& cancelled);
  StatusOr<Child> TakeChild();
  void GiveBack(Child child, const wire::ChildDone& done);
  // Starts a spare child beside those that work, if there is none.
  void KeepSpare();
  StatusOr<Child> StartChild();

  const PoolOptions options_;

  // Guards the members from here to starting_spare_.
  std::mutex mutex_;
  std::condition_variable place_freed_;
  std::deque<const Place*> queue_;
  int busy_ = 0;
  // The last child has worked most recently.
  std::vector<Child> idle_;
  bool starting_spare_ = false;

  std::atomic<uint64_t> children_started_{0};
  std::atomic<uint64_t> children_lost_{0};
  std::atomic<uint64_t> children_replaced_{0};
};

}  // namespace kiln::builder
