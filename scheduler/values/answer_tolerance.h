// The difference from the reference that a task's answers may have.
#pragma once

#include <string_view>

#include "proto/trial.pb.h"

namespace kiln::scheduler {

// Returns `asked`, with each figure that is 0 replaced by what the arithmetic of the target's
// matrix units needs for the computation. A figure stays 0, which means the default of the type, if
// the arithmetic needs no more, or if `dag` or `target` does not parse.
v1::Tolerance AnswerTolerance(const v1::Tolerance& asked, std::string_view dag,
                              std::string_view target);

}  // namespace kiln::scheduler
