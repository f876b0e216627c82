// A cache that builds nothing twice. It keeps replies in memory, and drops the least recently used
// first. Calls for a request that is being built wait for that build.
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

// Returns the identity of a build's result: DAG, target, steps, kernel, fault, the device's limits
// and whether only the source is asked for, together with the compiler `version`. Limits of the
// build are not part of it.
std::string RequestKey(const v1::BuildRequest& request, std::string_view version);

// Keeps repeatable replies, also those of candidates that failed. A reply from the cache has
// `cached` set and took no time (build_s 0).
class BuildCache : public BuildExecutor {
 public:
  // `behind` builds requests that are not here, and outlives the cache. If max_bytes is 0, nothing
  // is kept.
  BuildCache(BuildExecutor& behind, int64_t max_bytes, std::string version)
      : behind_(behind), max_bytes_(max_bytes), version_(std::move(version)) {}

  // A call that waits for another call's build takes the build over if that call is cancelled.
  // Requests whose limits differ are built separately, until one of their replies has been kept.
  StatusOr<BuildOutcome> Build(const v1::BuildRequest& request,
                               const std::function<bool()>& cancelled) override;

  struct Stats {
    // Calls answered by kept replies.
    uint64_t hits = 0;
    // Calls answered by a build that another call had begun.
    uint64_t joined = 0;
    // Calls that built.
    uint64_t misses = 0;
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
  // A build that runs for one call while others wait for it.
  struct Flight {
    bool done = false;
    StatusOr<BuildOutcome> outcome = Cancelled("not built");
  };

  // The caller of Find and Keep holds the lock.
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
  // Most recently used first.
  std::list<Entry> entries_;
  std::unordered_map<std::string, std::list<Entry>::iterator> by_key_;
  std::unordered_map<std::string, std::shared_ptr<Flight>> flights_;
  Stats stats_;
};

}  // namespace kiln::builder
