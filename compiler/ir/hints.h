// Stage hints: numbers beside the loops of a schedule that say how code is made of a stage. A hint
// never changes what the stage computes.
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
  // GPU: register double buffering of the operands that a stage reads from shared memory. 0:
  // operands are read where they are used; 1: they are read one step of the reduction ahead; 2: in
  // addition, the tile is computed in serpentine order.
  kRegisterBuffering,
  // GPU: how many blocks must be resident on a multiprocessor at once, which limits the registers
  // of a thread. 0: no requirement.
  kMinBlocks,
  // GPU: the hardware that computes the tiles of a sum of products. 0: each thread computes its own
  // elements, one product after the other; 1: the matrix units, a warp at a time
  // (codegen/cuda/matrix_tile.h); 2: the matrix units of sm_90, four warps at a time
  // (codegen/cuda/matrix_warpgroup.h).
  kMatrixUnit,
  // GPU: the layout in shared memory of a stage's rows that matrix units read. 0: one row behind
  // the other, padded as the stage's SA step says; 1: not padded, the parts of 16 bytes of a row
  // permuted (codegen/cuda/swizzle.h).
  kSwizzle,
  // GPU: the way in which the tiles that units of four warps multiply are copied. 0: asynchronous
  // copies of all threads; 1: the bulk copy engine of sm_90, driven by a warp of its own; 2: as 1,
  // and pairs of blocks share the tiles that both need (codegen/cuda/bulk_copies.h).
  kBulkCopies,
  // GPU: number of blocks of a kernel with bulk copies, each of which computes one tile after the
  // other (persistent blocks). 0, or at least the number of tiles: a block has one tile.
  kPersistentBlocks,
  // GPU: the work of each persistent block. 0: whole tiles; 1: an equal share, so that one block
  // may begin a sum that the next one finishes (Stream-K; codegen/cuda/bulk_copies.h).
  kStreamK,
};

// The part of a program that holds a hint.
enum class HintPlace : uint8_t {
  // ProgramStage.
  kStage,
  // Kernel, for a hint of the root stage.
  kKernel,
};

struct HintRow {
  Hint hint;
  // Pragma of PR steps, as in "auto_unroll_max_step$64".
  std::string_view pragma;
  // Keyword in the text of loop nests and programs.
  std::string_view word;
  // The hint's values are 0 to `most`.
  int32_t most;
  HintPlace place;
  // If the hint is 0, the stage takes the value of the stage that it is computed in.
  bool is_inherited = false;
  bool is_gpu_only = false;
  // TVM's records do not have the hint.
  bool is_extension = true;
};

// In the order in which texts print the hints.
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

// Values of all hints of a stage of a schedule, or of a stage or kernel of a program.
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
