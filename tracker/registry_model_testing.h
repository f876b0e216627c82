// A simple registry for tests: vectors that are searched from end to end.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "tracker/checks.h"
#include "tracker/registry.h"

namespace kiln::tracker {

// The state that a registry must keep. Tests follow the real registry operation by operation with
// it.
class RegistryModel {
 public:
  explicit RegistryModel(int64_t now) : start(now) {}

  struct W {
    v1::WorkerState state;
    int64_t gone_at = 0;
    int64_t heard = 0;
    int64_t grantable_from = 0;
    bool announced = false;
    // Mode that an operator asks for, and his name.
    std::optional<std::pair<v1::WorkerMode, std::string>> wish = std::nullopt;
  };
  struct L {
    v1::Lease lease;
    std::string scheduler;
    std::string request;
    int64_t expires;
  };
  struct R {
    v1::AcquireRequest ask;
    int64_t keep_until;
  };

  W* FindWorker(std::string_view id) {
    for (W& w : workers) {
      if (w.state.id() == id) return &w;
    }
    return nullptr;
  }
  L* FindLease(std::string_view id) {
    for (L& l : leases) {
      if (l.lease.id() == id) return &l;
    }
    return nullptr;
  }
  int64_t Busy(const W& w) const {
    return std::count_if(leases.begin(), leases.end(),
                         [&](const L& l) { return l.lease.worker().id() == w.state.id(); });
  }
  // From the mildest mode to the strictest.
  static int Strictness(v1::WorkerMode mode) {
    return std::map<v1::WorkerMode, int>{{v1::WORKER_SERVES, 0},
                                         {v1::WORKER_CORDONED, 1},
                                         {v1::WORKER_DRAINS, 2},
                                         {v1::WORKER_QUARANTINED, 3},
                                         {v1::WORKER_PAUSED, 4}}
        .at(mode);
  }
  int StrictnessOf(const W& w) const {
    const int said = Strictness(w.state.mode());
    if (!w.wish || (w.wish->first == w.state.asked_mode() && w.wish->second == w.state.asked_by()))
      return said;
    return std::max(said, Strictness(w.wish->first));
  }
  bool GivesBack(const W& w) const { return StrictnessOf(w) >= 2; }
  int64_t Free(const W& w, int64_t now) const {
    if (!w.announced || now < w.grantable_from || StrictnessOf(w) > 0) return 0;
    return w.state.slots() - Busy(w);
  }
  void DropWorker(const std::string& id) {
    std::erase_if(leases, [&](const L& l) { return l.lease.worker().id() == id; });
    std::erase_if(workers, [&](const W& w) { return w.state.id() == id; });
    departed.insert(id);
  }
  void Advance(int64_t now) {
    std::vector<std::string> gone;
    for (const W& w : workers) {
      if (now >= w.gone_at) gone.push_back(w.state.id());
    }
    for (const std::string& id : gone) DropWorker(id);
    std::erase_if(leases, [&](const L& l) { return now >= l.expires; });
    std::erase_if(waiting, [&](const R& r) { return now >= r.keep_until; });
  }
  // Returns whether the announcement says something impossible at this time.
  bool Contradicts(const v1::WorkerState& state, int64_t now, int64_t patience) const {
    for (const W& w : workers) {
      const bool same_id = w.state.id() == state.id();
      const bool same_address = w.state.address() == state.address();
      if (same_id && !same_address) return true;
      const bool other_is_new = std::none_of(workers.begin(), workers.end(), [&](const W& known) {
        return known.state.id() == state.id();
      });
      if (!same_id && same_address && w.announced && other_is_new && now - w.heard < patience) {
        return true;
      }
    }
    return false;
  }
  int64_t HeldBy(v1::WorkerKind kind, const std::string& user) const {
    return std::count_if(leases.begin(), leases.end(), [&](const L& l) {
      return l.lease.user() == user && l.lease.worker().kind() == kind;
    });
  }
  double UseOf(v1::WorkerKind kind, const std::string& user) const {
    const auto it = use.find({kind, user});
    return it == use.end() ? 0 : it->second;
  }
  // Returns the index of the request whose turn it is; nullopt: no request can be served.
  std::optional<size_t> Due(int64_t now) const {
    std::optional<size_t> best;
    // Requests are in order of arrival.
    for (size_t i = 0; i < waiting.size(); ++i) {
      const v1::AcquireRequest& ask = waiting[i].ask;
      if (std::none_of(workers.begin(), workers.end(), [&](const W& w) {
            return Serves(w.state, ask.kind(), ask.key()) && Free(w, now) > 0;
          })) {
        continue;
      }
      const auto rank = [&](const v1::AcquireRequest& a) {
        return std::make_tuple(-a.priority(), UseOf(a.kind(), a.user()),
                               HeldBy(a.kind(), a.user()));
      };
      if (!best || rank(ask) < rank(waiting[*best].ask)) best = i;
    }
    return best;
  }

  int64_t start;
  std::vector<W> workers;
  std::set<std::string> departed;
  // In order of grants.
  std::vector<L> leases;
  // In order of arrival.
  std::vector<R> waiting;
  // The last number that was sent for each user.
  std::map<std::pair<v1::WorkerKind, std::string>, double> use;
};

}  // namespace kiln::tracker
