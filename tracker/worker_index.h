// An index of the registry's workers, so that nobody has to look at each of them: it tells which
// have a free slot for a key, how many slots there are for a key, and which announce spans of
// drift.
//
// Not thread-safe. Cost: O(log W) a call with W workers, for each key of the worker if something
// has changed.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
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
  // A worker with fewer leases than slots.
  struct Free {
    // Number of slots without a lease.
    uint32_t slots = 0;
    // Order of the worker's last grant; 0: it had none.
    uint64_t last_grant = 0;
    std::string id;
    // The order in which they get leases: the most free slots first, then the oldest grant.
    bool operator<(const Free& other) const {
      return std::tie(other.slots, last_grant, id) < std::tie(slots, other.last_grant, other.id);
    }
  };
  using FreeWorkers = std::set<Free>;

  // Notes how many slots of a noted worker have no lease.
  void SetFree(const std::string& id, uint32_t slots, uint64_t last_grant);

  // Returns the workers of the kind that serve the key and have fewer leases than slots.
  const FreeWorkers& FreeFor(v1::WorkerKind kind, const std::string& key) const;
  // Returns the workers that announce spans of drift.
  const Ids& drifting() const { return drifting_; }
  // Returns the slots of all workers of the kind that serve the key.
  uint32_t SlotsFor(v1::WorkerKind kind, const std::string& key) const;

 private:
  struct Known {
    v1::WorkerKind kind = v1::WORKER_KIND_UNSPECIFIED;
    std::vector<std::string> keys;  // as the worker lists them
    uint32_t slots = 0;
    Free free;
  };
  using KindKey = std::pair<v1::WorkerKind, std::string>;

  // Adds the worker's slots to those of its keys, or takes them away.
  void Count(const Known& worker, bool is_there);
  // Lists the worker among the free ones of its keys if it has a free slot, or takes it away.
  void List(const Known& worker, bool is_there);

  std::map<std::string, Known, std::less<>> workers_;
  std::map<KindKey, uint32_t> slots_;
  std::map<KindKey, FreeWorkers> free_;
  Ids drifting_;
};

}  // namespace kiln::tracker
