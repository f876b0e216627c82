// The choice between a record's schedule and the heuristic schedule, which is chosen without
// measuring. This is the one rule for all users of schedules that do not search. The rule keeps a
// computation that was measured a little from getting a slower program than one that was never
// measured.
//
//   1. A record is taken if it was read again beside its rivals, late in a search.
//   2. If the heuristic schedule was measured too, the faster one is taken. A first reading has to
//      be faster by more than its noise.
//   3. If the heuristic schedule failed, the record is taken.
//   4. If the heuristic schedule was not measured, it replaces a record of the unscheduled loops,
//      unless another schedule was measured and was slower than these. It also replaces a record
//      that both its reading and the model find far slower than the heuristic schedule.
//
// One thread.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "search/choice/choice.h"
#include "search/choice/heuristic_choice.h"
#include "search/choice/known_records.h"
#include "search/space/task.h"
#include "store/record.h"

namespace kiln::search {

// Tells whether the record of another computation or target says more than the model does. A record
// does if a search has found its schedule and read it again, or if it comes from a log. Schedules
// that were chosen without measuring, the unscheduled loops and first readings say nothing about
// this computation.
bool IsWorthReusing(const store::Record& record);

class RecordOrHeuristic {
 public:
  // The arguments outlive this object. `seed` is the seed of the heuristic schedule.
  RecordOrHeuristic(const Task& task, KnownRecords& records, uint64_t seed)
      : task_(task), records_(records), seed_(seed) {}

  // `best` is the best record of the task's computation and target. Reads the computation's other
  // records unless the first case holds. The choice is of a record, or kSample.
  StatusOr<Choice> Choose(const store::Record& best);

  // `choice` is a compatible record of another computation or target. The choice is taken unless it
  // is of the unscheduled loops, or the model finds it slower than the heuristic schedule (far
  // slower if it was measured with the same extents).
  StatusOr<Choice> ChooseCompatible(Choice choice);

 private:
  StatusOr<Choice> WithoutOther(const store::Record& best, bool others_work);
  StatusOr<HeuristicChoice> Heuristic() const;
  // Returns the analytic model's time, or infinity if the steps do not apply.
  double PredictedSeconds(const std::string& steps) const;

  const Task& task_;
  KnownRecords& records_;
  const uint64_t seed_;
};

}  // namespace kiln::search
