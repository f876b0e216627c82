#include "tracker/worker_index.h"

#include <algorithm>

namespace kiln::tracker {

void WorkerIndex::Note(const v1::WorkerState& state) {
  if (state.drifts().empty()) {
    drifting_.erase(state.id());
  } else {
    drifting_.insert(state.id());
  }
  Known& known = workers_[state.id()];
  const bool is_same = known.kind == state.kind() && known.slots == state.slots() &&
                       std::ranges::equal(known.keys, state.keys());
  if (is_same) return;
  Count(known, false);
  known = {state.kind(), {state.keys().begin(), state.keys().end()}, state.slots()};
  Count(known, true);
}

void WorkerIndex::Forget(const std::string& id) {
  const auto it = workers_.find(id);
  if (it == workers_.end()) return;
  Count(it->second, false);
  workers_.erase(it);
  free_.erase(id);
  drifting_.erase(id);
}

void WorkerIndex::SetFree(const std::string& id, bool is_free) {
  if (is_free) {
    free_.insert(id);
  } else {
    free_.erase(id);
  }
}

uint32_t WorkerIndex::SlotsFor(v1::WorkerKind kind, const std::string& key) const {
  const auto it = slots_.find({kind, key});
  return it == slots_.end() ? 0 : it->second;
}

// A worker may list a key twice.
void WorkerIndex::Count(const Known& worker, bool is_there) {
  for (const std::string& key : std::set<std::string>(worker.keys.begin(), worker.keys.end())) {
    const auto it = slots_.try_emplace({worker.kind, key}, 0).first;
    it->second = is_there ? it->second + worker.slots : it->second - worker.slots;
    if (it->second == 0) slots_.erase(it);
  }
}

}  // namespace kiln::tracker
