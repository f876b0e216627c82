// Copies the content of one store into another one: jobs with their tasks, rounds and records,
// records of logs, computations and the bindings of keys, calibrations, cost models, and pinned
// schedules.
//
// The other store loses nothing. If both stores have something under the same name, equal things
// count once; of different things the other store keeps its own, and the conflict is counted.
// Merging again changes nothing, so another merge completes an interrupted one.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "store/store.h"

namespace kiln::store {

struct MergeResult {
  // Jobs that the other store did not have.
  int64_t jobs = 0;
  // Records of schedules that the other store did not have.
  int64_t records = 0;
  // Records of autotvm that the other store did not have.
  int64_t autotvm = 0;
  // Records that the other store had already.
  int64_t duplicates = 0;
  // Things that are left out: the other store has another record of the job's trial, another job of
  // the id, another computation bound to the key, another model of the name, or another pinned
  // schedule.
  int64_t conflicts = 0;
  std::string first_conflict = {};
};

// Jobs of `from` that have not ended are cancelled in `into`: they continue in the store where they
// began. The stores must differ. Cost: `from` is read once; memory holds a batch of bounded size
// and the rows of the jobs. After an error `into` has a part, and each record in it is whole.
StatusOr<MergeResult> MergeStore(Store& from, Store& into, int64_t now_ms);

}  // namespace kiln::store
