// A compiled network in memory, before it is a file.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/status.h"
#include "graph/constant.h"
#include "runtime/network.h"
#include "runtime/place_buffers.h"

namespace kiln::client {

// A kernel's row of the coverage report.
struct KernelCoverage {
  std::string name;
  std::string description;  // "conv 1,56,56,64 x 3,3,64,64 + add + relu"
  bool is_simple = false;   // has no sums
  runtime::KernelSource source = runtime::KernelSource::kUntuned;
  std::string record = {};
  double expected_s = 0;
  std::string reused_from = {};  // what the record is of, where it is not of this task and target
  std::string remark = {};       // why a record was not used
  bool takes_packed = false;     // constants, in an order of its own
};

// Owns all that the network refers to.
struct CompiledNetwork {
  runtime::Network network;
  std::vector<std::string> binaries;
  // By buffer: as they are, also where the network says that the buffer has them packed.
  std::map<int32_t, graph::ConstantPtr> constants;
  std::vector<KernelCoverage> coverage;  // by kernel
  runtime::PlacedMemory memory;
};

// As a file (runtime/network_file.h). Its size in bytes.
StatusOr<int64_t> WriteCompiled(const std::string& path, const CompiledNetwork& compiled);

}  // namespace kiln::client
