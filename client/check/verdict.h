// Judges whether an output of a program matches the reference, within the tolerances of trials
// (runner/compare.h). Pure.
#pragma once

#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "base/status.h"
#include "compiler/ir/ndarray.h"
#include "proto/trial.pb.h"

namespace kiln::client {

// Result for one output of a network, or one kernel.
struct Verdict {
  std::string name;
  // The largest difference as a part of the largest value.
  double max_error = 0;
  // Describes the fault; "": there is none.
  std::string problem;
  // Number of elements that are NaN in the reference, and correct for an online softmax
  // (compiler/dag/online_variant.h).
  int64_t online = 0;
};

// `online` returns the same output of the computation's online variant. It is called only if the
// variant may matter; its errors are returned. Null: the program computes no softmax online.
StatusOr<Verdict> JudgeOutput(const std::string& name, const ir::NDArray& got,
                              const ir::NDArray& want, const v1::Tolerance& tolerance,
                              const absl::FunctionRef<StatusOr<ir::NDArray>()>* online);

}  // namespace kiln::client
