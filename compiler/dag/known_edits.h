// What DAGs were made out of one, so that steps that say the same make it once: a search applies the
// same ones to thousands of states.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace kiln::dag {

class Dag;

// All that the new DAG depends on beside the old one.
using EditKey = std::vector<int64_t>;

// Threads: any number at once.
class KnownEdits {
 public:
  // Null: it is not known, or no longer.
  std::shared_ptr<const Dag> Find(const EditKey& key) const;
  // Gives what is known by now: another thread may have been first.
  std::shared_ptr<const Dag> Add(EditKey key, std::shared_ptr<const Dag> dag);

 private:
  // More take the place of the oldest, so that a long search does not keep all it has seen.
  static constexpr size_t kMost = 16;

  std::shared_ptr<const Dag> FindLocked(const EditKey& key) const;

  mutable std::mutex mutex_;
  std::vector<std::pair<EditKey, std::shared_ptr<const Dag>>> edits_;
  size_t oldest_ = 0;
};

}  // namespace kiln::dag
