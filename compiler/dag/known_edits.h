// DAGs that steps made out of a DAG. Equal steps then make a DAG only once: a search applies the
// same steps to thousands of states.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace kiln::dag {

class Dag;

// All facts on which the new DAG depends beside the old one.
using EditKey = std::vector<int64_t>;

// Any number of threads may call at once.
class KnownEdits {
 public:
  // Returns null if the edit is not known, or no longer.
  std::shared_ptr<const Dag> Find(const EditKey& key) const;
  // Returns the DAG that is known now: another thread may have added it first.
  std::shared_ptr<const Dag> Add(EditKey key, std::shared_ptr<const Dag> dag);

 private:
  // Further edits replace the oldest ones, so that a long search does not keep all edits that it
  // has seen. A large DAG keeps fewer: Add bounds the nodes of all together.
  static constexpr size_t kMax = 16;

  std::shared_ptr<const Dag> FindLocked(const EditKey& key) const;

  mutable std::mutex mutex_;
  std::vector<std::pair<EditKey, std::shared_ptr<const Dag>>> edits_;
  size_t oldest_ = 0;
};

}  // namespace kiln::dag
