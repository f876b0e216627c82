// A compiled network: what is in a .kiln file (network_file.h), as plain values.
//
// A network is a list of kernels in the order of their execution. Kernels read and write buffers,
// known by number. Where a buffer lies says its place:
//
//   input     the caller's, one per input of the network
//   output    the caller's, one per output that a kernel writes
//   constant  at an offset in the constants, which stay as they are
//   arena     at an offset in one block of memory of the executor's own; who is not live together
//             may share it
//   view      at an offset in another buffer, which is no view itself
//
// Who makes a network lists its buffers without offsets of constants and arena, and calls
// PlaceBuffers (place_buffers.h). CheckNetwork says what has to hold; a file is checked by it when
// it is written and when it is read.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/packing.h"
#include "base/status.h"
#include "base/tensor_map.h"

namespace kiln::runtime {

inline constexpr int64_t kMostAlignmentBytes = 4096;

// What the kernels were compiled for.
struct NetworkTarget {
  std::string kind;    // "cpu" (shared objects), "cuda" (cubins), "null" (runs nothing)
  std::string arch;    // "sm_90"; of a CPU the family: "x86_64", "aarch64"
  std::string device;  // the model, for people: "NVIDIA H200"
  // Of a CPU: what it must have, by the names of cpu_features.h: "avx2", "fma".
  std::vector<std::string> features;
  std::string text;  // as Kiln writes targets, for people: "llvm -mcpu=znver4"
};

// An input or output, as the caller sees it: row-major, contiguous. Or a constant.
struct NetworkTensor {
  std::string name;
  std::string dtype;           // "float32"; those of runtime/dtype.h
  std::vector<int64_t> shape;  // empty: a scalar
  int32_t buffer = 0;          // of as many bytes
  // Of constants: how the elements lie in the buffer, which has the bytes of the packed array;
  // none: row-major. Its shape is `shape`.
  std::optional<Packing> packing = {};
};

enum class Place : uint8_t { kInput, kOutput, kConstant, kArena, kView };

struct NetworkBuffer {
  Place place = Place::kArena;
  int64_t bytes = 0;             // at least 1; 0 of inputs and constants without elements
  int64_t alignment_bytes = 64;  // that kernels count on; a power of two
  int64_t offset = 0;            // of constants, arena and views: in what they lie in
  int32_t viewed = 0;            // of views: the buffer that they lie in
};

struct KernelArgument {
  int32_t buffer = 0;
  bool written = false;  // also if it is read, too; a kernel's own workspace is written
};

// One launch of a kernel on a GPU. Of a CPU kernel the symbol alone: its entry point.
struct NetworkLaunch {
  std::string symbol;
  uint32_t grid[3] = {1, 1, 1};   // x, y, z
  uint32_t block[3] = {1, 1, 1};  // x, y, z
  uint32_t dynamic_shared_bytes = 0;
  uint32_t cluster = 0;        // blocks of one along x, as the kernel was compiled for; 0: none
  std::vector<uint32_t> args;  // indices into the kernel's
  std::vector<TensorMap> tensor_maps = {};  // further parameters; `arg` likewise
  // It begins by waiting for the launch before it: it may be launched before that has ended.
  bool waits_for_previous = false;
};

// Where the schedule of a kernel comes from.
enum class KernelSource : uint8_t {
  kTuned,    // a record of this very task
  kReused,   // a record of another task
  kUntuned,  // no record: a schedule that was chosen without measuring
};

struct NetworkKernel {
  std::string name;  // for people, "conv2d_nhwc_add_relu"
  int32_t binary = 0;
  std::vector<KernelArgument> args;     // in the order of the program's
  std::vector<NetworkLaunch> launches;  // CPU: exactly one, with all args
  std::string workload_key;
  // What it computes: a DAG as text (docs/text-form.md), for who checks it. The DAG's arguments are
  // the first of `args`; what is behind them is workspace.
  std::string computation;
  std::string record;  // its id; empty: none
  KernelSource source = KernelSource::kUntuned;
  double expected_s = 0;  // by the record; 0: not known
  double flops = 0;
  double bytes = 0;  // that it must at least read and write
};

struct Network {
  NetworkTarget target;
  std::vector<NetworkTensor> inputs;
  std::vector<NetworkTensor> outputs;
  // What constant buffers hold, by the graph's names. A buffer has one row at most; a constant may
  // be in several, each packed for other kernels.
  std::vector<NetworkTensor> constants;
  std::vector<NetworkBuffer> buffers;
  std::vector<NetworkKernel> kernels;
  int64_t arena_bytes = 0;
  int64_t constants_bytes = 0;
  // ELF files, shared objects or cubins, each once. Somebody else's memory.
  std::vector<std::string_view> binaries;
  // What is computed, for people and for who checks it: the network that the kernels were made of.
  // Empty: one kernel, whose computation is all.
  std::string graph_text;
  std::string options_text;  // for people: how it was compiled
};

// A place in memory, for a view in what it lies in.
struct Region {
  int32_t root = 0;    // a buffer that is no view
  int64_t offset = 0;  // in the root
  int64_t bytes = 0;
};
Region RegionOf(const Network& network, int32_t buffer);

// How the elements of what a kernel is given lie in this buffer; null: row-major. Cost: linear in
// the constants.
const Packing* PackingOf(const Network& network, int32_t buffer);

// The buffer of output `index` belongs to this output: kernels write it there. False: another
// output's, an input, a constant or arena, from where it is copied when all kernels have run.
bool IsWrittenInPlace(const Network& network, size_t index);

// One sentence that says what is wrong where, or OK. What holds then:
//   * all numbers are in range, all offsets aligned and inside of what they lie in, dtypes known,
//     bytes of a tensor those of its buffer;
//   * each input has its own input buffer; each output buffer is an output's; a constant its own
//     constant buffer; constants alone are packed (CheckPacking), and no output is one that is;
//   * no kernel writes an input or a constant, and none reads what nothing has written;
//   * buffers that share memory of the arena are not live together, constants do not overlap;
//   * on a CPU a kernel has one launch; on a GPU each launch has extents of at least 1.
// Cost: some microseconds per kernel.
Status CheckNetwork(const Network& network);

std::string_view PlaceName(Place place);           // "arena"
std::string_view SourceName(KernelSource source);  // "tuned"

}  // namespace kiln::runtime
