// What is known of computations: records, and schedules that somebody has set. Contexts (context.h)
// choose by it. A store has it (StoreRecords); so has whoever answers the same questions.
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

  // The best record of the computation for each text of a target that has one.
  virtual StatusOr<std::vector<store::Record>> Best(const std::string& workload_id) = 0;
  // Those that were tuned with this hash in their keys: the same stages with whatever extents.
  virtual StatusOr<std::vector<KnownComputation>> WithHash(std::string_view hash) = 0;
  virtual StatusOr<std::vector<store::PinnedSchedule>> Set(const std::string& workload_id) = 0;
  // All records of the computation, failures included, until `visit` returns an error.
  virtual Status Visit(const std::string& workload_id,
                       const std::function<Status(const store::Record&)>& visit) = 0;
};

// Of computations that were tuned, by the hash of their keys; each once.
class ComputationsByHash {
 public:
  void Add(KnownComputation computation);
  std::vector<KnownComputation> WithHash(std::string_view hash) const;

 private:
  std::map<std::string, KnownComputation> by_id_;
  std::multimap<std::string, std::string, std::less<>> ids_;  // by hash
};

// Those of a store, which outlives this. Reads its jobs once, with the first WithHash.
class StoreRecords final : public KnownRecords {
 public:
  explicit StoreRecords(store::Store& store) : store_(store) {}

  StatusOr<std::vector<store::Record>> Best(const std::string& workload_id) override;
  StatusOr<std::vector<KnownComputation>> WithHash(std::string_view hash) override;
  StatusOr<std::vector<store::PinnedSchedule>> Set(const std::string& workload_id) override;
  Status Visit(const std::string& workload_id,
               const std::function<Status(const store::Record&)>& visit) override;

 private:
  store::Store& store_;
  std::optional<ComputationsByHash> tuned_;
};

}  // namespace kiln::search
