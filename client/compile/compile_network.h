// From a network and the records of its tasks to a compiled network (runtime/network.h): what
// `kiln compile` does.
//
// Runs the compiler in the calling process, on threads of its own; nothing outlives a call.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/status.h"
#include "client/archive.h"
#include "client/network.h"
#include "compiler/target/target.h"
#include "graph/constant.h"
#include "graph/graph.h"
#include "runtime/network.h"
#include "runtime/place_buffers.h"

namespace kiln::client {

struct CompileOptions {
  target::Target target;
  std::string device = {};  // the model that it is for, for people: "NVIDIA H200"
  Variants variants = Variants::kAll;
  // Refuses a network of which a task was never tuned; the error lists them.
  bool strict = false;
  uint64_t seed = 1;
  int threads = 0;  // 0: one for each CPU
};

// A kernel's row of the coverage report.
struct KernelCoverage {
  std::string name;
  std::string description;  // "conv 1,56,56,64 x 3,3,64,64 + add + relu"
  bool is_simple = false;   // has no sums
  runtime::KernelSource source = runtime::KernelSource::kUntuned;
  std::string record = {};
  double expected_s = 0;
  std::string remark = {};  // why a record was not used
};

// Owns all that the network refers to.
struct CompiledNetwork {
  runtime::Network network;
  std::vector<std::string> binaries;
  std::map<int32_t, graph::ConstantPtr> constants;  // by buffer
  std::vector<KernelCoverage> coverage;             // by kernel
  runtime::PlacedMemory memory;
};

// The network after its passes, one kernel per group, each with the best record of its computation;
// a convolution is done in the way whose record is faster. Kernels without one get a schedule that
// is chosen without measuring. `archive`: null: no records. Errors are for the user.
StatusOr<CompiledNetwork> CompileNetwork(const graph::Graph& network, const CompileOptions& options,
                                         Archive* archive);

// As a file (runtime/network_file.h). Its size in bytes.
StatusOr<int64_t> WriteCompiled(const std::string& path, const CompiledNetwork& compiled);

}  // namespace kiln::client
