// The daemon's copies of reference outputs, in memory files whose descriptors its children get, so
// that a new child needs no new run of the reference. No path leads to them but those of /proc, which
// a hidden process (base/process_guard.h) opens to nobody. Bounded by bytes, least recently used out first. Not
// thread-safe.
#pragma once

#include <list>
#include <string>

#include "base/fd.h"
#include "base/status.h"
#include "proto/trial.pb.h"

namespace kiln::runner {

struct Reference {
  std::string key;
  v1::LaunchPlan plan;
  double cost_s = 0;
  std::string unchecked;  // why its outputs prove little; empty: they do
  UniqueFd outputs;       // sealed; invalid for a null program
  int64_t bytes = 0;
  bool is_known = false;  // it gives what a caller has computed by itself
};

class ReferenceStore {
 public:
  explicit ReferenceStore(int64_t max_bytes) : max_bytes_(max_bytes) {}

  static std::string KeyOf(const std::string& digest, uint64_t seed);

  // Null when there is none. Valid until the next Insert.
  const Reference* Find(const std::string& key);
  void Erase(const std::string& key);
  // One that is larger than the whole store is kept alone until the next.
  const Reference& Insert(Reference reference);

 private:
  const int64_t max_bytes_;
  int64_t bytes_ = 0;
  std::list<Reference> references_;  // most recently used first
};

// An empty memory file for a child to write to, and the end of its being written.
StatusOr<UniqueFd> MakeOutputFile();
Status SealOutputFile(const UniqueFd& file);

}  // namespace kiln::runner
