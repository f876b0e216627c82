// Stage hints: numbers beside the loops of a schedule that say how code is made of a stage, and
// never what it computes.
//
// Steps, loop nests and programs as text, comparison, verification and lowering handle all hints
// alike, by the rows of kHints. Only code generators and features know what a hint means: they ask
// for its value. How a search chooses the value is a row in search/space/stage_hints.cc.
// docs/howto/add-a-hint.md says how to add one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string_view>
#include <utility>

namespace kiln::ir {

// A value of 0 is the default of each.
enum class Hint : uint8_t {
  // Loops are unrolled up to so many stores.
  kUnroll,
  // GPU: register double buffering of the operands that a stage reads from shared memory. 0: none,
  // they are read where they are used; 1: they are read one step of the reduction ahead; 2: also,
  // the tile is computed in serpentine order.
  kRegisterBuffering,
  // GPU: how many blocks must be resident on a multiprocessor at once, which limits the registers
  // of a thread. 0: no requirement.
  kMinBlocks,
  // GPU: what computes the tiles of a sum of products. 0: each thread its own elements, one product
  // after the other; 1: the matrix units, a warp at a time (codegen/cuda/matrix_tile.h); 2: those of
  // sm_90, four warps at a time (codegen/cuda/matrix_warpgroup.h).
  kMatrixUnit,
  // GPU: how the rows of a stage in shared memory lie, which matrix units read. 0: one behind the
  // other, padded as its SA step says; 1: not padded, their parts of 16 bytes permuted
  // (codegen/cuda/swizzle.h).
  kSwizzle,
  // GPU: what brings the tiles that units of four warps multiply. 0: asynchronous copies of all
  // threads; 1: the bulk copy engine of sm_90, told by a warp of its own; 2: likewise, and pairs of
  // blocks share what both need (codegen/cuda/bulk_copies.h).
  kBulkCopies,
  // GPU: of a kernel with bulk copies, how many blocks there are, each of which computes one tile after
  // the other (persistent blocks). 0, or no fewer than tiles: a block has one tile.
  kPersistentBlocks,
  // GPU: of a kernel of persistent blocks, what each of them computes. 0: whole tiles; 1: as much as
  // any other, sums begun by one block and finished by the next (Stream-K; codegen/cuda/bulk_copies.h).
  kStreamK,
};

// Where a program keeps it.
enum class HintPlace : uint8_t {
  kStage,   // ProgramStage
  kKernel,  // Kernel: that which the root stage becomes
};

struct HintRow {
  Hint hint;
  std::string_view pragma;  // of PR steps: "auto_unroll_max_step$64"
  std::string_view word;    // in loop nests and programs as text
  int32_t most;             // values are 0 to this
  HintPlace place;
  bool is_inherited = false;  // where it is 0, that of the stage it is computed in holds
  bool is_gpu_only = false;
  bool is_extension = true;  // TVM's records do not have it
};

// In the order of texts.
inline constexpr HintRow kHints[] = {
    {.hint = Hint::kUnroll,
     .pragma = "auto_unroll_max_step",
     .word = "auto_unroll",
     .most = std::numeric_limits<int32_t>::max(),
     .place = HintPlace::kStage,
     .is_inherited = true,
     .is_extension = false},
    {.hint = Hint::kRegisterBuffering,
     .pragma = "register_buffering",
     .word = "register_buffering",
     .most = 2,
     .place = HintPlace::kStage,
     .is_gpu_only = true},
    {.hint = Hint::kMinBlocks,
     .pragma = "min_blocks",
     .word = "min_blocks",
     .most = 32,
     .place = HintPlace::kKernel,
     .is_gpu_only = true},
    {.hint = Hint::kMatrixUnit,
     .pragma = "matrix_unit",
     .word = "matrix_unit",
     .most = 2,
     .place = HintPlace::kStage,
     .is_gpu_only = true},
    {.hint = Hint::kSwizzle,
     .pragma = "swizzle",
     .word = "swizzle",
     .most = 1,
     .place = HintPlace::kStage,
     .is_gpu_only = true},
    {.hint = Hint::kBulkCopies,
     .pragma = "bulk_copies",
     .word = "bulk_copies",
     .most = 2,
     .place = HintPlace::kStage,
     .is_gpu_only = true},
    {.hint = Hint::kPersistentBlocks,
     .pragma = "persistent_blocks",
     .word = "persistent_blocks",
     .most = 1 << 16,
     .place = HintPlace::kKernel,
     .is_gpu_only = true},
    {.hint = Hint::kStreamK,
     .pragma = "stream_k",
     .word = "stream_k",
     .most = 1,
     .place = HintPlace::kKernel,
     .is_gpu_only = true},
};
inline constexpr size_t kNumHints = std::size(kHints);

constexpr const HintRow& RowOf(Hint hint) { return kHints[static_cast<size_t>(hint)]; }
static_assert(
    [] {
      for (size_t i = 0; i < kNumHints; ++i) {
        if (kHints[i].hint != static_cast<Hint>(i)) return false;
      }
      return true;
    }(),
    "the rows are in the order of the enum");

// The values of all hints: of a stage of a schedule, or of a stage or kernel of a program.
class Hints {
 public:
  Hints() = default;
  Hints(std::initializer_list<std::pair<Hint, int32_t>> values) {
    for (const auto& [hint, value] : values) (*this)[hint] = value;
  }
  int32_t operator[](Hint hint) const { return values_[static_cast<size_t>(hint)]; }
  int32_t& operator[](Hint hint) { return values_[static_cast<size_t>(hint)]; }
  bool operator==(const Hints&) const = default;

 private:
  std::array<int32_t, kNumHints> values_ = {};
};

}  // namespace kiln::ir
