// Finds the best records without reading all records, by two indexes that hold their order:
//
//   best_of_workload   the records of each computation and target, the best first
//   best_of_day        the records of each day, the best first
//
// Cost: two look-ups for each pair of a computation and a target, or for each day, and at most
// `limit` records of each. Of the first and the last day of a span of time, records outside of the
// span are passed over; so are those of a computation if the span holds many of its records.
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
