// A compiled network: the content of a .kiln file (network_file.h), as plain values.
//
// A network is a list of kernels in the order of their execution. Kernels read and write buffers,
// which have numbers. The place of a buffer says where its memory is:
//
//   input     the caller's memory, one buffer per input of the network
//   output    the caller's memory, one buffer per output that a kernel writes
//   constant  at an offset in the constants, which do not change
//   arena     at an offset in one block of the executor's own memory; buffers that are not live
//             together may share it
//   view      at an offset in another buffer, which is no view itself
//
// A compiler lists the buffers of a network without offsets of constants and arena, and calls
// PlaceBuffers (place_buffers.h). CheckNetwork checks the rules that a network must follow. It
// checks a file when it is written and when it is read.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/arrays/packing.h"
#include "base/arrays/tensor_map.h"
#include "base/status.h"

namespace kiln::runtime {

inline constexpr int64_t kMaxAlignmentBytes = 4096;

// The device that the kernels were compiled for.
struct NetworkTarget {
  // "cpu" (shared objects), "cuda" (cubins), "null" (runs nothing), or another kind: which kinds
  // run is a matter of network_device_kinds.h.
  std::string kind;
  // "sm_90"; for a CPU the family: "x86_64", "aarch64".
  std::string arch;
  // The device's model, for people: "NVIDIA H200".
  std::string device;
  // Features that a CPU must have, by the names of cpu_features.h: "avx2", "fma".
  std::vector<std::string> features;
  // The target as Kiln writes targets, for people: "llvm -mcpu=znver4".
  std::string text;
};

// An input or output as the caller sees it, row-major and contiguous, or a constant.
struct NetworkTensor {
  std::string name;
  // "float32"; one of the types of runtime/dtype.h.
  std::string dtype;
  // Empty: a scalar.
  std::vector<int64_t> shape;
  // A buffer of as many bytes.
  int32_t buffer = 0;
  // Layout of a constant's elements in the buffer, which has the bytes of the packed array; none:
  // row-major. The packing's shape is `shape`.
  std::optional<Packing> packing = {};
};

enum class Place : uint8_t { kInput, kOutput, kConstant, kArena, kView };

struct NetworkBuffer {
  Place place = Place::kArena;
  // At least 1, but 0 for inputs and constants without elements.
  int64_t bytes = 0;
  // Alignment that kernels rely on; a power of two.
  int64_t alignment_bytes = 64;
  // Offset of a constant, an arena buffer or a view in the memory that contains it.
  int64_t offset = 0;
  // For a view: the buffer that contains it.
  int32_t viewed = 0;
};

struct KernelArgument {
  int32_t buffer = 0;
  // Also true if the argument is read as well. A kernel's own workspace is written.
  bool written = false;
};

// One launch of a kernel on a GPU. For a CPU kernel only the symbol, its entry point, and the
// arguments are set.
struct NetworkLaunch {
  std::string symbol;
  // Dimensions x, y, z.
  uint32_t grid[3] = {1, 1, 1};
  // Dimensions x, y, z.
  uint32_t block[3] = {1, 1, 1};
  uint32_t dynamic_shared_bytes = 0;
  // Blocks of a cluster along x, as the kernel was compiled for; 0: no clusters.
  uint32_t cluster = 0;
  // Indices into the kernel's arguments.
  std::vector<uint32_t> args;
  // Further parameters. Their `arg` is an index into the kernel's arguments, too.
  std::vector<TensorMap> tensor_maps = {};
  // The launch begins by waiting for the launch before it, so it may be launched before that one
  // has ended.
  bool waits_for_previous = false;
};

// Origin of a kernel's schedule.
enum class KernelSource : uint8_t {
  // A record of this very task.
  kTuned,
  // A record of another task.
  kReused,
  // No record: a schedule that was chosen without measuring.
  kUntuned,
};

struct NetworkKernel {
  // Name for people: "conv2d_nhwc_add_relu".
  std::string name;
  int32_t binary = 0;
  // In the order of the program's arguments.
  std::vector<KernelArgument> args;
  // A CPU kernel has exactly one launch, with all arguments.
  std::vector<NetworkLaunch> launches;
  std::string workload_key;
  // The computation: a DAG as text (docs/text-form.md), for tools that check the kernel. The DAG's
  // arguments are the first of `args`; the others are workspace.
  std::string computation;
  // Id of the record; empty: none.
  std::string record;
  KernelSource source = KernelSource::kUntuned;
  // Cost by the record; 0: not known.
  double expected_s = 0;
  double flops = 0;
  // Bytes that the kernel must at least read and write.
  double bytes = 0;
};

struct Network {
  NetworkTarget target;
  std::vector<NetworkTensor> inputs;
  std::vector<NetworkTensor> outputs;
  // Contents of constant buffers, by the graph's names. A buffer has one row at most. A constant
  // may be in several buffers, each packed for other kernels.
  std::vector<NetworkTensor> constants;
  std::vector<NetworkBuffer> buffers;
  std::vector<NetworkKernel> kernels;
  int64_t arena_bytes = 0;
  int64_t constants_bytes = 0;
  // ELF files (shared objects or cubins), each once. The network does not own their memory.
  std::vector<std::string_view> binaries;
  // The network that the kernels were made from, for people and for tools that check the kernels.
  // Empty: there is one kernel, whose computation is the whole network.
  std::string graph_text;
  // How the network was compiled, for people.
  std::string options_text;
};

// A range of memory. For a view it is the range in the buffer that contains the view.
struct Region {
  // A buffer that is no view.
  int32_t root = 0;
  // Offset in the root.
  int64_t offset = 0;
  int64_t bytes = 0;
};
Region RegionOf(const Network& network, int32_t buffer);

// Returns the layout of the elements in a buffer that kernels are given; null: row-major. Cost:
// linear in the constants.
const Packing* PackingOf(const Network& network, int32_t buffer);

// Returns whether kernels write output `index` into its own buffer. If false, the output is in
// another output's buffer, an input, a constant or the arena, and is copied from there when all
// kernels have run.
bool IsWrittenInPlace(const Network& network, size_t index);

// Returns OK, or one sentence that says what is wrong where. The rules are:
//   * all numbers are in range, all offsets are aligned and inside of the memory that contains
//     them, dtypes are known, and the bytes of a tensor are those of its buffer;
//   * each input has its own input buffer, each output buffer belongs to an output, and a constant
//     has its own constant buffer; only constants are packed (CheckPacking), and no output is a
//     packed constant;
//   * no kernel writes an input or a constant, and none reads a buffer that nothing has written;
//   * arena buffers that share memory are not live together, and constants do not overlap;
//   * a kernel has a launch, and each launch has extents of at least 1.
// A device checks what it alone needs when the network is loaded (network_device.h).
// Cost: some microseconds per kernel.
Status CheckNetwork(const Network& network);

// Returns for instance "arena".
std::string_view PlaceName(Place place);
// Returns for instance "tuned".
std::string_view SourceName(KernelSource source);

}  // namespace kiln::runtime
