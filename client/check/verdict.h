// Is an output of a program what the reference has? Within the tolerances of trials
// (runner/compare.h). Pure.
#pragma once

#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "base/status.h"
#include "compiler/ir/ndarray.h"
#include "proto/trial.pb.h"

namespace kiln::client {

// On one output of a network, or on one kernel.
struct Verdict {
  std::string name;
  double max_error = 0;  // the largest difference, as a part of the largest value
  std::string problem;   // what is wrong; "": nothing
  // Elements that are NaN in the reference and right as those of an online softmax
  // (compiler/dag/online_variant.h).
  int64_t online = 0;
};

// `online`: the same output of the computation's online variant; called where that may matter. Null:
// the program computes no softmax online. Errors: those of `online`.
StatusOr<Verdict> JudgeOutput(const std::string& name, const ir::NDArray& got,
                              const ir::NDArray& want, const v1::Tolerance& tolerance,
                              const absl::FunctionRef<StatusOr<ir::NDArray>()>* online);

}  // namespace kiln::client
