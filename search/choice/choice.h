// The schedule that a computation gets when nothing is searched.
#pragma once

#include <string>

#include "compiler/target/target.h"
#include "store/record.h"

namespace kiln::search {

enum class ChoiceSource {
  kNone,        // no schedule is known
  kSet,         // somebody has set the schedule
  kFixed,       // the same schedule for all computations (FixedSchedule)
  kRecord,      // the best record of the computation for a target that means the same
  kCompatible,  // the best record of another target of the kind, or of other extents
  kSample,      // chosen without measuring
};

struct Choice {
  ChoiceSource source = ChoiceSource::kNone;
  std::string steps;   // a JSON array (schedule/step.h); "" for kNone
  std::string record;  // its id; "" if nothing was measured
  // The record's cost, if the record is of the same computation.
  double cost_s = 0;
  target::HardwareParams hardware = {};  // parameters of the device that measured it
  std::string device = {};               // its model; "" if the record does not say
  // For kRecord: the way in which the record was measured (device/measured_as.h).
  std::string measured_as = {};
  // For kCompatible: the computation and target of the record, and their distance
  // (workload_distance.h).
  std::string reused_from = {};
  double distance = 1;
  // For kSample: "sketch 1, by rule", and the time that the analytic model predicts.
  std::string origin = {};
  double predicted_s = 0;
};

// Makes the choice of a record's schedule.
Choice ChoiceOf(const store::Record& record);

}  // namespace kiln::search
