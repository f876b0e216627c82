// kiln verify checks that a compiled network computes what it should: its outputs against those of
// its graph, and each kernel by itself against the unscheduled program of its computation
// (reference_programs.h). All comparisons have the tolerances of trials (runner/compare.h).
//
// The file runs on the device for which it was compiled, the reference on this machine's CPU.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "base/status.h"
#include "client/check/verdict.h"
#include "compiler/ir/ndarray.h"
#include "proto/trial.pb.h"
#include "runtime/executor.h"
#include "runtime/network_file.h"

namespace kiln::client {

struct VerifyOptions {
  // Inputs of the network, in its order.
  std::vector<ir::NDArray> inputs = {};
  // Expected outputs by number. They replace the outputs of the graph.
  std::map<size_t, ir::NDArray> expected;
  // True: each kernel is checked by itself as well.
  bool kernels = false;
  // 0: the tolerance depends on the type.
  v1::Tolerance tolerance = {};
  runtime::ExecutorOptions executor = {};
};

struct VerifyReport {
  // Verdicts of the outputs; if VerifyOptions::expected has some, of those alone.
  std::vector<Verdict> outputs;
  // Verdicts of the kernels, in their order.
  std::vector<Verdict> kernels;

  bool AllRight() const;
};

// An error means that the check could not be made. FailedPrecondition: the file is for another
// device; DataLoss: its constants are not those of its graph.
StatusOr<VerifyReport> VerifyNetwork(const std::shared_ptr<const runtime::NetworkFile>& file,
                                     const VerifyOptions& options);

}  // namespace kiln::client
