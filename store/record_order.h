// Chooses one record of several. All that names a best record goes by this order: queries, choices
// of schedules, the status of a job, the final race, logs of best records.
//
// Rank (record.h) orders all records. Among the best of one target and way of measuring there may
// be several finalists (Record::confidence_s) whose intervals say that they do not differ
// significantly. A reading more or less would change their order, so the smallest id is chosen of
// them: every query chooses the same record, also in a copy of the database or a merge with it.
//
// Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "store/record.h"

namespace kiln::store {

// A store looks at so many of the best records for finalists that do not differ from the best.
inline constexpr size_t kMostRivals = 256;

// The part of a record by which it is chosen.
struct Rival {
  Rank rank = {};
  // Half the width of the interval of a finalist's cost; 0: the record is no finalist.
  double confidence_s = 0;
  // Model of the device that measured it.
  std::string device = {};
};
Rival RivalOf(const Record& record);

// Returns whether two finalists do not differ significantly: they were measured in one way on one
// model of device, and 0 lies within the 95% interval of their difference, which is the root of the
// sum of the squares of both intervals. False if one of the two is no finalist.
bool AreEqual(const Rival& a, const Rival& b);

struct ChosenRecord {
  int64_t id = 0;
  // Ids of the finalists that do not differ significantly from the fastest one, without `id`,
  // ascending.
  std::vector<int64_t> equal_ids = {};
};
// Chooses one of at least one rival. The result does not depend on their order.
ChosenRecord ChooseRecord(std::span<const Rival> rivals);

}  // namespace kiln::store
