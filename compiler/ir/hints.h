// Stage hints: numbers beside the loops of a schedule that say how code is made of a stage, and
// never what it computes.
//
// A row of kHints is all that steps, loop nests and programs as text, their comparison and
// verification, and lowering know of a hint. Who makes code or features of one asks for its value;
// how a search chooses it says a row in search/stage_hints.cc. docs/steps.md tells how to add one.
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
  // GPU: how the stage's register tiles read shared memory. 0: where it is used; 1: a step of the
  // reduction ahead, into registers; 2: and the rows of the tile are worked off to and fro.
  kFragments,
  // GPU: how many blocks shall fit a multiprocessor at once. 0: as many as do.
  kMinBlocks,
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
    {.hint = Hint::kFragments,
     .pragma = "fragments",
     .word = "fragments",
     .most = 2,
     .place = HintPlace::kStage,
     .is_gpu_only = true},
    {.hint = Hint::kMinBlocks,
     .pragma = "min_blocks",
     .word = "min_blocks",
     .most = 32,
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

// The value of each hint: of a stage, of what a program has of it.
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
