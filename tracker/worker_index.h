// An index of the registry's workers, so that nobody has to look at each of them: it tells which
// have a free slot, how many slots there are for a key, and which announce spans of drift.
//
// Not thread-safe. Cost: O(log W) a call with W workers, and the worker's keys when they change.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "proto/tracker.pb.h"

namespace kiln::tracker {

class WorkerIndex {
 public:
  using Ids = std::set<std::string, std::less<>>;

  // Takes the state of the worker in place of the one that was noted before.
  void Note(const v1::WorkerState& state);
  void Forget(const std::string& id);
  // Notes whether the worker has fewer leases than slots.
  void SetFree(const std::string& id, bool is_free);

  // Returns the workers with fewer leases than slots, in the order of their ids.
  const Ids& free() const { return free_; }
  // Returns the workers that announce spans of drift.
  const Ids& drifting() const { return drifting_; }
  // Returns the slots of all workers of the kind that serve the key.
  uint32_t SlotsFor(v1::WorkerKind kind, const std::string& key) const;

 private:
  struct Known {
    v1::WorkerKind kind = v1::WORKER_KIND_UNSPECIFIED;
    std::vector<std::string> keys;  // as the worker lists them
    uint32_t slots = 0;
  };

  // Adds the worker's slots to those of its keys, or takes them away.
  void Count(const Known& worker, bool is_there);

  std::map<std::string, Known, std::less<>> workers_;
  std::map<std::pair<v1::WorkerKind, std::string>, uint32_t> slots_;
  Ids free_;
  Ids drifting_;
};

}  // namespace kiln::tracker
