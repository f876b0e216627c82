// Finds the best records of all computations without reading all records: the index
// best_of_workload orders the records of each computation and target, so the best ones stand first
// in each group.
//
// Cost: two look-ups for each pair of a computation and a target, however many records they have.
// At most `limit` records of each pair are read.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "store/sqlite.h"
#include "store/store.h"

namespace kiln::store {

// Returns whether the index covers all conditions of the filter, apart from the number of records.
bool IsOfBestIndex(const RecordFilter& filter);

// Returns the first `limit` matching records without an error, best first. Call it within a
// transaction.
StatusOr<std::vector<int64_t>> TopRecords(sqlite::Database& database, const RecordFilter& filter,
                                          uint32_t limit);

}  // namespace kiln::store
