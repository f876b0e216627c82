// The result of a code generator: the binary and how to call it. Plain data; services turn it into
// the wire's Artifact.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/packing.h"
#include "base/tensor_map.h"
#include "compiler/ir/program.h"

namespace kiln::codegen {

struct Argument {
  std::string name;
  ir::Type type;
  std::vector<int64_t> shape;  // of the tensor, also where it is packed
  ir::Scope scope;             // kInput, kOutput or kWorkspace
  uint32_t alignment_bytes = 64;
  int64_t index_limit = 0;
  // How the program takes the tensor, where not as it is.
  std::optional<Packing> packing = {};

  // Of what the program is given.
  int64_t bytes() const;
};
// Of an argument's buffer.
Argument ArgumentOf(const ir::Buffer& buffer);

// A number that a kernel takes beside its arrays.
struct ScalarArgument {
  uint32_t position = 0;  // among all that the kernel takes
  std::string value;      // little-endian
};

struct Launch {
  std::string symbol;
  std::vector<uint32_t> grid, block;  // x, y, z; empty on CPU
  uint32_t cluster = 1;               // blocks of a cluster, along x
  uint32_t dynamic_shared_bytes = 0;
  std::vector<uint32_t> args;                // indices into Compiled::args
  std::vector<ScalarArgument> scalars = {};  // by ascending position
  // Behind all else that the kernel takes. `arg` is an index into Compiled::args.
  std::vector<TensorMap> tensor_maps = {};
  // It waits by itself for what was launched before it (CompileOptions::waits_for_previous).
  bool waits_for_previous = false;
  // What the compiler says of a GPU kernel.
  uint32_t registers = 0, spilled_bytes = 0, stack_bytes = 0;  // per thread
  uint32_t shared_bytes = 0;                                   // per block, dynamic ones among them
};

struct Compiled {
  std::string binary;  // as the device of the target kind loads it
  std::vector<Argument> args;
  std::vector<Launch> launches;
  // The loaded binary keeps what a run puts down for itself, so that no two runs of it may be under way
  // at the same time: whoever runs it beside itself loads it twice.
  bool is_stateful = false;
};

// Deliberately broken code, for the fault tests of builders and runners.
enum class Fault : uint8_t {
  kNone,
  kNullStore,
  kInfiniteLoop,
  kWrongAnswer,
  kTrap,
  kOutOfBounds,  // 10 elements behind the end of the first output
};

struct CompileOptions {
  Fault fault = Fault::kNone;
  // GPU kernels begin by waiting until what was launched before them has ended, if the GPU can do so
  // (sm_90): they may then be launched earlier, so that launching costs less (CUDA's programmatic
  // dependent launch). Launched as any kernel they do not wait.
  bool waits_for_previous = false;
};

}  // namespace kiln::codegen
