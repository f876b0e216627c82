// The best records of all computations without reading all: the index best_of_workload has those of
// each computation and target in order, and what is better than the best found so far is at the
// beginning of each.
//
// Cost: two look-ups for each pair of a computation and a target, however many records they have,
// and no more than the limit of each is read.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "store/sqlite.h"
#include "store/store.h"

namespace kiln::store {

// Is all that the filter asks for, but the number, in the index?
bool IsOfBestIndex(const RecordFilter& filter);

// The first `limit` without an error that match, best first. Within a transaction.
StatusOr<std::vector<int64_t>> TopRecords(sqlite::Database& database, const RecordFilter& filter,
                                          uint32_t limit);

}  // namespace kiln::store
