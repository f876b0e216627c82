// kiln verify: does a compiled network compute what it should? Its outputs against those of its
// graph, and each kernel by itself against the unscheduled program of its computation
// (reference_programs.h), all within the tolerances of trials (runner/compare.h).
//
// The file runs on the device that it was compiled for, the reference always on this machine's CPU.
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
  std::vector<ir::NDArray> inputs = {};    // of the network, in its order
  std::map<size_t, ir::NDArray> expected;  // by output: instead of what the graph gives
  bool kernels = false;                    // each by itself, too
  v1::Tolerance tolerance = {};            // 0: by type
  runtime::ExecutorOptions executor = {};
};

struct VerifyReport {
  std::vector<Verdict> outputs;  // where some are expected, those alone
  std::vector<Verdict> kernels;  // in their order

  bool AllRight() const;
};

// Errors: it cannot be told. FailedPrecondition: the file is for another device; DataLoss: its
// constants are not those of its graph.
StatusOr<VerifyReport> VerifyNetwork(const std::shared_ptr<const runtime::NetworkFile>& file,
                                     const VerifyOptions& options);

}  // namespace kiln::client
