// A compiled network in memory, before it is written into a file.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/file/file.h"
#include "base/status.h"
#include "graph/constant.h"
#include "runtime/network.h"
#include "runtime/place_buffers.h"

namespace kiln::client {

// A kernel's row of the coverage report.
struct KernelCoverage {
  std::string name;
  // "conv 1,56,56,64 x 3,3,64,64 + add + relu".
  std::string description;
  // True: the kernel has no sums.
  bool is_simple = false;
  runtime::KernelSource source = runtime::KernelSource::kUntuned;
  std::string record = {};
  double expected_s = 0;
  // The task or target of the record, if it is not this one.
  std::string reused_from = {};
  // Why a record was not used.
  std::string remark = {};
  // True: the kernel takes constants in an element order of its own.
  bool takes_packed = false;
};

// Owns everything that the network refers to.
struct CompiledNetwork {
  runtime::Network network;
  std::vector<std::string> binaries;
  // Constants by buffer, unpacked even if the network has the buffer packed.
  std::map<int32_t, graph::ConstantPtr> constants;
  // Rows by kernel.
  std::vector<KernelCoverage> coverage;
  runtime::PlacedMemory memory;
};

// Writes the network as a file (runtime/network_file.h). Returns its size in bytes.
StatusOr<int64_t> WriteCompiled(const std::string& path, const CompiledNetwork& compiled);

// Appends the same bytes to a file (AppendNetwork).
Status AppendCompiled(AtomicFile& file, const CompiledNetwork& compiled);

}  // namespace kiln::client
