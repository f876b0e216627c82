// Computes the expected outputs of computations by their unscheduled programs, with large sums in
// float64 (compiler/dag/wide_sums.h), compiled for this machine's CPU. Networks of some GFLOPs take
// seconds this way, and minutes by the oracle of DAGs.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/file/file.h"
#include "base/status.h"
#include "compiler/dag/dag.h"
#include "compiler/ir/ndarray.h"
#include "runtime/executor.h"

namespace kiln::client {

// Keeps the compiled programs. Not thread-safe.
class ReferencePrograms {
 public:
  static StatusOr<ReferencePrograms> Make();

  // `inputs` has one array per placeholder, in the order of Dag::arguments(), none packed. Returns
  // one array per output. Cost: a tenth of a second for a new computation, and about a nanosecond
  // for each of its operations.
  StatusOr<std::vector<ir::NDArray>> Evaluate(const dag::DagPtr& dag,
                                              std::span<const ir::NDArray> inputs);

 private:
  explicit ReferencePrograms(TempDir folder) : folder_(std::move(folder)) {}
  StatusOr<std::unique_ptr<runtime::Executor>> Compile(const dag::DagPtr& dag);

  TempDir folder_;
  // Programs by workload id.
  std::map<std::string, std::unique_ptr<runtime::Executor>> programs_;
};

}  // namespace kiln::client
