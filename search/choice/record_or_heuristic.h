// The choice between a record's schedule and the one that is chosen without measuring: the one rule
// of all that take schedules where nothing is searched. It keeps a computation that was measured a
// little from getting a slower program than one that never was.
//
//   1. A record that was read again beside its rivals, late in a search, is taken.
//   2. Where the heuristic schedule was measured, too, the faster one is taken. A first reading has
//      to be faster by more than its noise.
//   3. Where it failed, the record is taken.
//   4. Where it was not measured, it is taken instead of the unscheduled loops, unless another
//      schedule was measured and was slower than these; and instead of a record that both its
//      reading and the model find far slower than it.
//
// One thread.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "search/choice/choice.h"
#include "search/choice/known_records.h"
#include "search/choice/unmeasured.h"
#include "search/space/task.h"
#include "store/record.h"

namespace kiln::search {

// Does the record of another computation or target say more than the model does? Only where a
// search has found its schedule and read it again, or where it comes from a log. What was chosen
// there without measuring, the plain loops and first readings say nothing of this computation.
bool IsWorthReusing(const store::Record& record);

class RecordOrHeuristic {
 public:
  // All outlive this. `seed`: of the heuristic schedule.
  RecordOrHeuristic(const Task& task, KnownRecords& records, uint64_t seed)
      : task_(task), records_(records), seed_(seed) {}

  // `best`: of the task's computation and target, the best one. Looks at the other records of the
  // computation unless the first case holds. The choice is of a record, or kSample.
  StatusOr<Choice> Choose(const store::Record& best);

  // `choice`: of another computation or target, which fits. It is taken unless it is of the plain
  // loops, or the model finds it slower than the heuristic schedule; far slower, where it was
  // measured with the same extents.
  StatusOr<Choice> ChooseCompatible(Choice choice);

 private:
  StatusOr<Choice> WithoutOther(const store::Record& best, bool others_work);
  StatusOr<UnmeasuredChoice> Heuristic() const;
  // The analytic model's time; infinite where the steps do not apply.
  double PredictedSeconds(const std::string& steps) const;

  const Task& task_;
  KnownRecords& records_;
  const uint64_t seed_;
};

}  // namespace kiln::search
