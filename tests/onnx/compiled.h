// Networks as users run them: compiled for this CPU with schedules that are chosen without
// measuring, written to a file, loaded and run.
#pragma once

#include <cstdint>

#include "tests/onnx/case.h"

namespace kiln {

// Another seed gives other schedules.
Evaluator CompiledEvaluator(uint64_t seed = 1);

}  // namespace kiln
