// The records of computations, and the schedules that somebody has set for them. Contexts
// (context.h) choose from them. A store is one source (StoreRecords); any class that can answer the
// same questions is another.
//
// Not thread-safe unless an implementation says so.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "store/store.h"

namespace kiln::search {

// A computation that was tuned.
struct KnownComputation {
  std::string id;   // dag/workload_id.h
  std::string key;  // dag/workload_key.h
  std::string description;
};

class KnownRecords {
 public:
  virtual ~KnownRecords() = default;

  // Returns the computation's best record for each text of a target that has one. With the keys of
  // the computation, these may be records of a log whose computation is known by its key alone.
  virtual StatusOr<std::vector<store::Record>> Best(const store::WorkloadRef& workload) = 0;
  // Returns the tuned computations with this hash in their keys: they have the same stages, with
  // any extents.
  virtual StatusOr<std::vector<KnownComputation>> WithHash(std::string_view hash) = 0;
  virtual StatusOr<std::vector<store::PinnedSchedule>> Set(const std::string& workload_id) = 0;
  // Visits all records of the computation, failures included, until `visit` returns an error.
  virtual Status Visit(const std::string& workload_id,
                       const std::function<Status(const store::Record&)>& visit) = 0;
};

// Tuned computations by the hash of their keys. Each computation is kept once.
class ComputationsByHash {
 public:
  void Add(KnownComputation computation);
  std::vector<KnownComputation> WithHash(std::string_view hash) const;

 private:
  std::map<std::string, KnownComputation> by_id_;
  std::multimap<std::string, std::string, std::less<>> ids_;  // key: hash
};

// The records of a store, which outlives this object. Reads the store's jobs once, at the first
// WithHash.
class StoreRecords final : public KnownRecords {
 public:
  explicit StoreRecords(store::Store& store) : store_(store) {}

  StatusOr<std::vector<store::Record>> Best(const store::WorkloadRef& workload) override;
  StatusOr<std::vector<KnownComputation>> WithHash(std::string_view hash) override;
  StatusOr<std::vector<store::PinnedSchedule>> Set(const std::string& workload_id) override;
  Status Visit(const std::string& workload_id,
               const std::function<Status(const store::Record&)>& visit) override;

 private:
  store::Store& store_;
  std::optional<ComputationsByHash> tuned_;
};

}  // namespace kiln::search
