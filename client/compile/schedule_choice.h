// Which schedule a kernel of a network gets: the best record of its computation, or, where there is
// none, one that is chosen without measuring.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "client/archive.h"
#include "compiler/dag/dag.h"
#include "compiler/target/target.h"
#include "search/space/task.h"

namespace kiln::client {

struct ScheduleChoice {
  std::string steps;                     // a JSON array (schedule/step.h)
  std::string record;                    // its id; "": none, nothing was measured
  double cost_s = 0;                     // by the record
  target::HardwareParams hardware = {};  // of the device that measured it
};

// The best record of the computation for a target that means the same, on any device of it.
// Without one: a choice without steps.
StatusOr<ScheduleChoice> BestRecordOf(const dag::Dag& dag, const target::Target& target,
                                      Archive& archive);

// The best of some hundred schedules by the analytic cost model of the task's device, which all
// replay and lower. The same seed gives the same one. Cost: a tenth of a second to seconds of a
// core; the policy uses one thread.
StatusOr<std::string> StepsWithoutMeasuring(const search::Task& task, uint64_t seed);

}  // namespace kiln::client
