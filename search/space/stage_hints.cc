#include "search/space/stage_hints.h"

#include <set>

#include "compiler/schedule/steps/steps.h"
#include "search/space/bulk_copies.h"
#include "search/space/gpu_validity.h"
#include "search/space/matrix_product.h"
#include "search/space/shared_layout.h"
#include "search/space/thread_shapes.h"
#include "search/space/tiling.h"

namespace kiln::search {
namespace {

using schedule::Attach;
using schedule::State;

// ---- unrolling

std::vector<int> ReducingStages(const State& state) {
  std::vector<int> stages;
  for (int s = 0; s < state.num_stages(); ++s) {
    const bool computed =
        !state.stage(s).is_placeholder() && state.attach(s).kind != Attach::kInlined;
    if (computed && HasReduceLoop(state.stage(s))) stages.push_back(s);
  }
  return stages;
}

std::vector<int32_t> UnrollDepths(const HintQuestion& question) {
  if (question.gpu) return {0, 16, 64, 512, 1024};
  return {0, 16, 64, 512};
}

// ---- register_buffering: they decide how the compiler spends registers, which no rule foresees

std::vector<int> ReadersOfFetches(const State& state) {
  std::set<int> readers;
  for (const int s : FetchedStages(state)) {
    if (!IsCopied(state, s)) readers.insert(state.attach(s).stage);
  }
  return {readers.begin(), readers.end()};
}

// All, beginning with the current one.
std::vector<int32_t> WaysToRead(const HintQuestion& question) {
  const int32_t ways = ir::RowOf(ir::Hint::kRegisterBuffering).most + 1, first = question.current;
  std::vector<int32_t> all;
  for (int32_t i = 0; i < ways; ++i) all.push_back((first + i) % ways);
  return all;
}

// ---- blocks of a multiprocessor: where registers limit them, the compiler keeps to fewer

constexpr int64_t kRegistersPerThread = 64;

std::vector<int> RootsOfFetches(const State& state) {
  if (state.online() != nullptr) return {state.num_stages() - 1};
  std::set<int> roots;
  for (int s : FetchedStages(state)) {
    if (IsCopied(state, s)) continue;
    while (state.attach(s).kind == Attach::kIter) s = state.attach(s).stage;
    roots.insert(s);
  }
  return {roots.begin(), roots.end()};
}

// 0: the compiler decides; else so many that 64 registers are left for a thread. 1 is always one:
// with it the compiler spends more registers than by its own choice.
std::vector<int32_t> BlocksThatFit(const HintQuestion& question) {
  const int64_t registers = question.threads_per_block() * kRegistersPerThread;
  std::vector<int32_t> choices = {0};
  for (const int32_t blocks : {1, 2, 3, 4, 5, 6, 8}) {
    if (blocks == 1 || blocks * registers <= kRegisters) choices.push_back(blocks);
  }
  return choices;
}

// ---- matrix_unit: a tile has to be cut for it, which no value alone makes of one; but some fit two
// kinds of units

std::vector<int> NoStages(const State&) { return {}; }
std::vector<int32_t> UnitsOfTile(const HintQuestion& question) {
  if (question.current == 0 || !question.has_warpgroup_units) return {question.current};
  return {static_cast<int32_t>(ir::MatrixUnitScope::kWarp),
          static_cast<int32_t>(ir::MatrixUnitScope::kWarpgroup)};
}

// ---- swizzle: of what matrix units read

std::vector<int> ReadByMatrixUnits(const State& state) {
  std::vector<int> stages;
  for (const int s : FetchedStages(state)) {
    if (!IsCopied(state, s) && state.stage(state.attach(s).stage).hints[ir::Hint::kMatrixUnit] != 0)
      stages.push_back(s);
  }
  return stages;
}

std::vector<int32_t> OffAndOn(const HintQuestion&) { return {0, 1}; }

// ---- bulk_copies: of what units of four warps read; what does not fit is lowered (bulk_copies.h)

std::vector<int> WithTilesToCopy(const State& state) {
  if (state.online() == nullptr) return ProductsOfMatrixUnits(state);
  if (state.online()->matrix_unit != ir::MatrixUnitScope::kWarpgroup) return {};
  return {state.num_stages() - 1};
}

// The engine is hardly ever slower. Blocks of an online softmax are no pairs.
std::vector<int32_t> WaysToCopy(const HintQuestion& question) {
  if (question.is_online) return {0, 1, 1, 1};
  return {0, 1, 1, 1, 2, 2};
}

// ---- persistent_blocks, stream_k: likewise

// Of a multiprocessor: its registers and shared memory have room for hardly more.
std::vector<int32_t> OneOrTwoEach(const HintQuestion& question) {
  std::vector<int32_t> choices = {0};
  for (const int32_t each : {1, 2}) {
    if (question.multiprocessors > 0) choices.push_back(each * question.multiprocessors);
  }
  return choices;
}

constexpr HintChoice kHintChoices[] = {
    {.hint = ir::Hint::kUnroll,
     .parameter = "",
     .mutation = "unroll depth",
     .cpu_weight = 0.04,
     .gpu_weight = 0.08,
     .stages = ReducingStages,
     .values = UnrollDepths},
    {.hint = ir::Hint::kRegisterBuffering,
     .parameter = "register_buffering",
     .mutation = "register_buffering",
     .gpu_weight = 0.04,
     .stages = ReadersOfFetches,
     .values = WaysToRead},
    {.hint = ir::Hint::kMinBlocks,
     .parameter = "min_blocks",
     .mutation = "minimum of blocks",
     .gpu_weight = 0.03,
     .probability = 0.65,
     .stages = RootsOfFetches,
     .values = BlocksThatFit},
    {.hint = ir::Hint::kMatrixUnit,
     .parameter = "",
     .mutation = "kind of matrix unit",
     .gpu_weight = 0.02,
     .stages = NoStages,
     .values = UnitsOfTile},
    {.hint = ir::Hint::kSwizzle,
     .parameter = "swizzle",
     .mutation = "swizzle",
     .gpu_weight = 0.03,
     .stages = ReadByMatrixUnits,
     .values = OffAndOn},
    {.hint = ir::Hint::kBulkCopies,
     .parameter = "bulk_copies",
     .mutation = "bulk copies",
     .gpu_weight = 0.02,
     .stages = WithTilesToCopy,
     .values = WaysToCopy},
    {.hint = ir::Hint::kPersistentBlocks,
     .parameter = "persistent_blocks",
     .mutation = "persistent blocks",
     .gpu_weight = 0.02,
     .stages = RootsOfMatrixUnits,
     .values = OneOrTwoEach},
    {.hint = ir::Hint::kStreamK,
     .parameter = "stream_k",
     .mutation = "stream-k",
     .gpu_weight = 0.02,
     .stages = RootsOfMatrixUnits,
     .values = OffAndOn},
};
static_assert(std::size(kHintChoices) == ir::kNumHints);
static_assert(
    [] {
      for (size_t i = 0; i < ir::kNumHints; ++i) {
        if (kHintChoices[i].hint != static_cast<ir::Hint>(i)) return false;
      }
      return true;
    }(),
    "the rows are in the order of ir::kHints");

}  // namespace

std::span<const HintChoice> HintChoices() { return kHintChoices; }

int32_t DrawHint(const HintChoice& choice, const HintQuestion& question, Rng& rng) {
  if (choice.probability < 1 && !Chance(rng, choice.probability)) return 0;
  return PickFrom(rng, choice.values(question));
}

Status AnnotateGpuHints(State& state, std::span<const bool, ir::kNumHints> wanted,
                        int32_t multiprocessors, Rng& rng) {
  for (const HintChoice& choice : kHintChoices) {
    if (!ir::RowOf(choice.hint).is_gpu_only || !wanted[static_cast<size_t>(choice.hint)]) continue;
    for (const int s : choice.stages(state)) {
      const HintQuestion question{
          .gpu = true,
          .threads_per_block = [&] { return UseOfKernel(state, s).threads; },
          .multiprocessors = multiprocessors,
          .is_online = state.online() != nullptr};
      KILN_RETURN_IF_ERROR(
          state.Apply(schedule::HintStep(s, choice.hint, DrawHint(choice, question, rng))));
    }
  }
  return OkStatus();
}

}  // namespace kiln::search
