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
  List(known, false);
  known.kind = state.kind();
  known.keys.assign(state.keys().begin(), state.keys().end());
  known.slots = state.slots();
  known.free.id = state.id();
  Count(known, true);
  List(known, true);
}

void WorkerIndex::Forget(const std::string& id) {
  const auto it = workers_.find(id);
  if (it == workers_.end()) return;
  Count(it->second, false);
  List(it->second, false);
  workers_.erase(it);
  drifting_.erase(id);
}

void WorkerIndex::SetFree(const std::string& id, uint32_t slots, uint64_t last_grant) {
  const auto it = workers_.find(id);
  if (it == workers_.end()) return;
  Known& known = it->second;
  if (known.free.slots == slots && known.free.last_grant == last_grant) return;
  List(known, false);
  known.free.slots = slots;
  known.free.last_grant = last_grant;
  List(known, true);
}

const WorkerIndex::FreeWorkers& WorkerIndex::FreeFor(v1::WorkerKind kind,
                                                     const std::string& key) const {
  static const FreeWorkers kNone;
  const auto it = free_.find({kind, key});
  return it == free_.end() ? kNone : it->second;
}

uint32_t WorkerIndex::SlotsFor(v1::WorkerKind kind, const std::string& key) const {
  const auto it = slots_.find({kind, key});
  return it == slots_.end() ? 0 : it->second;
}

void WorkerIndex::List(const Known& worker, bool is_there) {
  if (worker.free.slots == 0) return;
  for (const std::string& key : worker.keys) {
    if (is_there) {
      free_[{worker.kind, key}].insert(worker.free);
      continue;
    }
    const auto it = free_.find({worker.kind, key});
    if (it == free_.end()) continue;
    it->second.erase(worker.free);
    if (it->second.empty()) free_.erase(it);
  }
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
