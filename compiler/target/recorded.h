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
  // The options that it had besides, which are read nowhere: "-opt-level=3".
  std::vector<std::string> dropped;
};

// As ParseTarget, but for options of other compilers and of earlier versions, which ParseTarget
// refuses: they are left out. What people write is for ParseTarget; what was written before they
// were refused is for this.
StatusOr<RecordedTarget> ParseRecordedTarget(std::string_view text,
                                             TargetKinds kinds = AllTargetKinds());

}  // namespace kiln::target
