// The result of a code generator: the binary and the way to call it. Plain data; services turn it
// into the Artifact that is sent.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/arrays/packing.h"
#include "base/arrays/tensor_map.h"
#include "compiler/ir/program.h"

namespace kiln::codegen {

struct Argument {
  std::string name;
  ir::Type type;
  // Shape of the tensor, even if the tensor is packed.
  std::vector<int64_t> shape;
  // kInput, kOutput or kWorkspace.
  ir::Scope scope;
  uint32_t alignment_bytes = 64;
  int64_t index_limit = 0;
  // The packing in which the program takes the tensor. None: as it is.
  std::optional<Packing> packing = {};

  // Bytes of the argument, which may be packed.
  int64_t bytes() const;
};
// Returns the argument for a buffer.
Argument ArgumentOf(const ir::Buffer& buffer);

// A number that a kernel takes beside its arrays.
struct ScalarArgument {
  // Position among all arguments of the kernel.
  uint32_t position = 0;
  // Little-endian.
  std::string value;
};

struct Launch {
  std::string symbol;
  // Extents along x, y, z. Empty on a CPU.
  std::vector<uint32_t> grid, block;
  // Blocks of a cluster, along x.
  uint32_t cluster = 1;
  uint32_t dynamic_shared_bytes = 0;
  // Indices into Compiled::args.
  std::vector<uint32_t> args;
  // Ordered by position.
  std::vector<ScalarArgument> scalars = {};
  // Tensor maps come behind all other arguments of the kernel. `arg` is an index into
  // Compiled::args.
  std::vector<TensorMap> tensor_maps = {};
  // The kernel itself waits for the kernels that were launched before it
  // (CompileOptions::waits_for_previous).
  bool waits_for_previous = false;
  // Figures that the compiler reports about a GPU kernel.
  // Per thread.
  uint32_t registers = 0, spilled_bytes = 0, stack_bytes = 0;
  // Per block, including dynamic shared memory.
  uint32_t shared_bytes = 0;
};

struct Compiled {
  // The form that a device of the target kind loads.
  std::string binary;
  std::vector<Argument> args;
  std::vector<Launch> launches;
  // The loaded binary keeps state of a run, so two runs of it may not overlap. A caller that needs
  // overlapping runs must load it twice.
  bool is_stateful = false;
};

// Deliberately broken code, for the fault tests of builders and runners.
enum class Fault : uint8_t {
  kNone,
  kNullStore,
  kInfiniteLoop,
  kWrongAnswer,
  kTrap,
  // Stores 10 elements behind the end of the first output.
  kOutOfBounds,
};

struct CompileOptions {
  Fault fault = Fault::kNone;
  // GPU kernels begin by waiting for the end of the kernels launched before them, if the GPU can do
  // so (sm_90). They may then be launched earlier, so that launching costs less (CUDA's
  // programmatic dependent launch). If they are launched like any other kernel, they do not wait.
  bool waits_for_previous = false;
};

}  // namespace kiln::codegen
