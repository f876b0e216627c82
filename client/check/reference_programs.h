// What computations should give: by their unscheduled programs, with large sums in float64
// (compiler/dag/wide_sums.h), compiled for this machine's CPU.
// Networks of some GFLOPs take seconds by them, and minutes by the oracle of DAGs.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/status.h"
#include "compiler/dag/dag.h"
#include "compiler/ir/ndarray.h"
#include "runtime/executor.h"

namespace kiln::client {

// Keeps the programs. One thread at a time.
class ReferencePrograms {
 public:
  static StatusOr<ReferencePrograms> Make();

  // `inputs`: one array per placeholder, as Dag::arguments() lists them, none packed. Result: one per
  // output.
  // Cost: a tenth of a second for a computation that was not there before, and about a nanosecond
  // for each operation of it.
  StatusOr<std::vector<ir::NDArray>> Evaluate(const dag::DagPtr& dag,
                                              std::span<const ir::NDArray> inputs);

 private:
  explicit ReferencePrograms(TempDir folder) : folder_(std::move(folder)) {}
  StatusOr<std::unique_ptr<runtime::Executor>> Compile(const dag::DagPtr& dag);

  TempDir folder_;
  std::map<std::string, std::unique_ptr<runtime::Executor>> programs_;  // by workload id
};

}  // namespace kiln::client
