// Builds nothing twice: keeps replies in memory, the least recently used go first, and lets calls
// for what is being built wait for it.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "builder/build_executor.h"

namespace kiln::builder {

// Identifies what is to be built: DAG, target, steps, kernel, fault and the device's limits, by the
// compiler `version`. Limits of the build are not part of it.
std::string RequestKey(const v1::BuildRequest& request, std::string_view version);

// Replies that are repeatable are kept, those of candidates that failed too. A reply from here has
// `cached` set and took no time (build_s 0).
class BuildCache : public BuildExecutor {
 public:
  // `behind` builds what is not here and outlives this. max_bytes 0: nothing is kept.
  BuildCache(BuildExecutor& behind, int64_t max_bytes, std::string version)
      : behind_(behind), max_bytes_(max_bytes), version_(std::move(version)) {}

  // A call that waits for another's build takes it over when that one is cancelled. Builds whose
  // limits differ are different ones, until one of them has been kept.
  StatusOr<BuildOutcome> Build(const v1::BuildRequest& request,
                               const std::function<bool()>& cancelled) override;

  struct Stats {
    uint64_t hits = 0;    // of kept replies
    uint64_t joined = 0;  // answered by a build that another call had begun
    uint64_t misses = 0;  // built
    uint64_t entries = 0;
    int64_t bytes = 0;
  };
  Stats stats() const;

 private:
  struct Entry {
    std::string key;
    std::shared_ptr<const v1::BuildReply> reply;
    int64_t bytes;
  };
  // A build that runs for one call, with others waiting for it.
  struct Flight {
    bool done = false;
    StatusOr<BuildOutcome> outcome = Cancelled("not built");
  };

  // Both with the lock held.
  std::shared_ptr<const v1::BuildReply> Find(const std::string& key);
  void Keep(const std::string& key, const v1::BuildReply& reply);
  StatusOr<BuildOutcome> Lead(const std::string& key, const std::string& flight_key,
                              const v1::BuildRequest& request,
                              const std::function<bool()>& cancelled,
                              std::unique_lock<std::mutex>& lock);
  Status WaitFor(const Flight& flight, const std::function<bool()>& cancelled,
                 std::unique_lock<std::mutex>& lock);

  BuildExecutor& behind_;
  const int64_t max_bytes_;
  const std::string version_;

  mutable std::mutex mutex_;
  std::condition_variable landed_;
  std::list<Entry> entries_;  // most recently used first
  std::unordered_map<std::string, std::list<Entry>::iterator> by_key_;
  std::unordered_map<std::string, std::shared_ptr<Flight>> flights_;
  Stats stats_;
};

}  // namespace kiln::builder
