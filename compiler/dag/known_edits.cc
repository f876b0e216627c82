#include "compiler/dag/known_edits.h"

#include <algorithm>

#include "compiler/dag/dag.h"

namespace kiln::dag {
namespace {

// Nodes of the DAGs that one DAG keeps together; at least one DAG is kept. Each DAG that is kept
// keeps others, so the DAGs of a long computation, which takes many steps, would be thousands.
constexpr size_t kMaxNodes = 256;

}  // namespace

std::shared_ptr<const Dag> KnownEdits::FindLocked(const EditKey& key) const {
  for (const auto& [known, dag] : edits_) {
    if (known == key) return dag;
  }
  return nullptr;
}

std::shared_ptr<const Dag> KnownEdits::Find(const EditKey& key) const {
  const std::lock_guard lock(mutex_);
  return FindLocked(key);
}

std::shared_ptr<const Dag> KnownEdits::Add(EditKey key, std::shared_ptr<const Dag> dag) {
  const size_t most = std::clamp<size_t>(kMaxNodes / std::max(1, dag->size()), 1, kMax);
  std::pair<EditKey, std::shared_ptr<const Dag>> edit(std::move(key), std::move(dag));
  const std::lock_guard lock(mutex_);
  if (auto known = FindLocked(edit.first)) return known;
  std::shared_ptr<const Dag> added = edit.second;
  if (edits_.size() < most) {
    edits_.push_back(std::move(edit));
  } else {
    // The old edit is destroyed after the lock is released, because a DAG may own many others.
    edits_[oldest_].swap(edit);
    oldest_ = (oldest_ + 1) % edits_.size();
  }
  return added;
}

}  // namespace kiln::dag
