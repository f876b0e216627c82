// A schedule of a computation as a Python program that runs in TVM. It has the computation by
// te.compute, the schedule by s[...] primitives, the same computation in numpy, and a main that
// lowers and builds the schedule, runs it and compares the results. For TVM 0.19, the last version
// with te schedules.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "compiler/schedule/state.h"

namespace kiln::schedule {

// `target` is TVM's text. InvalidArgument: a step that TVM does not have (primitives.h), or a type
// that numpy does not have. Pure.
StatusOr<std::string> TvmProgram(const State& state, std::string_view target);

}  // namespace kiln::schedule
