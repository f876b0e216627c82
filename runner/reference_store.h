// The daemon's copies of reference outputs, so that a new child needs no new run of the reference.
// They are in memory files whose descriptors the children get. The only paths to them are in /proc,
// which a hidden process (base/process/process_guard.h) opens to nobody. The store is bounded by
// bytes; the least recently used go first. Not thread-safe.
#pragma once

#include <list>
#include <string>

#include "base/file/fd.h"
#include "base/status.h"
#include "proto/trial.pb.h"

namespace kiln::runner {

struct Reference {
  std::string key;
  v1::LaunchPlan plan;
  double cost_s = 0;
  // Reason why the outputs prove little; empty if they prove enough.
  std::string unchecked;
  // Sealed file of the outputs; invalid for a null program.
  UniqueFd outputs;
  int64_t bytes = 0;
  // True if the outputs agree with elements that a caller has computed by itself.
  bool is_known = false;
};

class ReferenceStore {
 public:
  explicit ReferenceStore(int64_t max_bytes) : max_bytes_(max_bytes) {}

  static std::string KeyOf(const std::string& digest, uint64_t seed);

  // Returns null if there is none. Valid until the next Insert.
  const Reference* Find(const std::string& key);
  void Erase(const std::string& key);
  // Inserts a reference. A reference that is larger than the whole store is kept alone until the
  // next Insert.
  const Reference& Insert(Reference reference);

 private:
  const int64_t max_bytes_;
  int64_t bytes_ = 0;
  // Most recently used first.
  std::list<Reference> references_;
};

// MakeOutputFile makes an empty memory file for a child to write to; SealOutputFile ends the
// writing.
StatusOr<UniqueFd> MakeOutputFile();
Status SealOutputFile(const UniqueFd& file);

}  // namespace kiln::runner
