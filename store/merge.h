// All that one store has, into another one: jobs with their tasks, rounds and records, records of
// logs, computations and what keys are bound to, calibrations, cost models, and schedules that
// somebody has set.
//
// Nothing is lost where the other store has something of its own under the same name: what is equal
// counts once, of what differs the other store's stays and is counted. Merging again changes
// nothing, so a merge that was broken off is made good by another one.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "store/store.h"

namespace kiln::store {

struct MergeResult {
  int64_t jobs = 0;        // that were not there
  int64_t records = 0;     // likewise
  int64_t autotvm = 0;     // likewise, of autotvm
  int64_t duplicates = 0;  // were there already
  // The other store has another record of the job's trial, another job of the id, another
  // computation bound to the key, another model of the name, or another schedule set: these are left
  // out.
  int64_t conflicts = 0;
  std::string first_conflict = {};
};

// Jobs of `from` that have not ended are cancelled in `into`: they go on where they began. The
// stores are two. Cost: one reading of `from`; what is held of it is a batch of bounded size and the
// rows of its jobs. After an error `into` has a part, of which each record is whole.
StatusOr<MergeResult> MergeStore(Store& from, Store& into, int64_t now_ms);

}  // namespace kiln::store
