// Which schedule a computation gets where nothing is searched.
#pragma once

#include <string>

#include "compiler/target/target.h"
#include "store/record.h"

namespace kiln::search {

enum class ChoiceSource {
  kNone,        // nothing is known
  kSet,         // somebody has said
  kFixed,       // the same for all (FixedSchedule)
  kRecord,      // the best record of the computation for a target that means the same
  kCompatible,  // the best record of another target of the kind, or of other extents
  kSample,      // chosen without measuring
};

struct Choice {
  ChoiceSource source = ChoiceSource::kNone;
  std::string steps;                     // a JSON array (schedule/step.h); "": of kNone
  std::string record;                    // its id; "": none, nothing was measured
  double cost_s = 0;                     // by the record, where it is one of the computation
  target::HardwareParams hardware = {};  // of the device that measured it
  std::string device = {};               // its model; "" where the record does not say
  // Of kCompatible: what the record is of, and how far that is (workload_distance.h).
  std::string reused_from = {};
  double distance = 1;
  // Of kSample: "sketch 1, by rule", and what the analytic model says of it.
  std::string origin = {};
  double predicted_s = 0;
};

// The choice that a record is.
Choice ChoiceOf(const store::Record& record);

}  // namespace kiln::search
