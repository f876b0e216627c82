// Finds the best records without reading all records, by three indexes that hold their order:
//
//   best_of_workload   the records of each computation and target, the best first
//   best_of_day        the records of each day, the best first
//   best_of_task       the records of each task of a job, the best first; imports have no tasks
//
// Cost: two look-ups for each pair of a computation and a target, for each day, or for each task,
// and at most `limit` records of each. Of the first and the last day of a span of time, records
// outside of the span are passed over; so are those of a computation if the span holds many of its
// records, and those of a task that do not match.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/status.h"
#include "store/sqlite.h"
#include "store/store.h"

namespace kiln::store {

// Returns the first `limit` matching records without an error, best first. `names` replaces the
// filter's workload. None: no index helps, and the records that match are to be sorted. Call it
// within a transaction.
StatusOr<std::optional<std::vector<int64_t>>> TopRecords(sqlite::Database& database,
                                                         const RecordFilter& filter,
                                                         const Store::Names& names, uint32_t limit);

}  // namespace kiln::store
