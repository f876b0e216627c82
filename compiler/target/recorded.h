// Targets as records and logs have them. Pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "compiler/target/target.h"

namespace kiln::target {

struct RecordedTarget {
  Target target;
  // Other options that the text had and that are read nowhere: "-opt-level=3".
  std::vector<std::string> dropped;
};

// Works like ParseTarget, but leaves out options of other compilers and of earlier versions, which
// ParseTarget refuses. ParseTarget is for texts that people write. This function is for texts that
// were written before those options were refused.
StatusOr<RecordedTarget> ParseRecordedTarget(std::string_view text,
                                             TargetKinds kinds = AllTargetKinds());

}  // namespace kiln::target
