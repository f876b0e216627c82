#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "compiler/instructions/matrix_unit.h"
#include "compiler/ir/matrix_unit_scope.h"
#include "compiler/ir/traverse.h"
#include "compiler/lower/fetch_ahead.h"
#include "compiler/lower/launch.h"
#include "compiler/lower/nest_builder.h"
#include "compiler/schedule/async_copy.h"

namespace kiln::lower {

using schedule::IterKind;

namespace {

// Returns true if the first factor of a product, that of the rows, is a matrix with its neighbours
// along the sum. Units of four warps then read it from shared memory, like the second factor
// (codegen/cuda/matrix_warpgroup.h).
bool IsOfMatrices(const dag::Operator& op) {
  const std::optional<instructions::MatrixFactors> factors =
      instructions::MatrixFactorsOf(op.bodies()[0]);
  if (!factors) return false;
  const auto reads = [](ir::Expr load, int axis) {
    return std::ranges::any_of(load->args(), [&](ir::Expr i) { return ir::UsesVar(i, axis); });
  };
  const auto spatial = static_cast<int>(op.axes().size());
  ir::Expr first = factors->a, second = factors->b;
  if (reads(first, spatial - 1)) std::swap(first, second);
  int row_indices = 0;
  for (const ir::Expr index : first->args()) {
    for (int axis = 0; axis < spatial; ++axis) {
      if (op.axes()[axis].extent == 1 || reads(second, axis) || !ir::UsesVar(index, axis)) continue;
      if (index->op != ir::Op::kVar || index == first->args().back()) return false;
      ++row_indices;
    }
  }
  return row_indices == 1;
}

}  // namespace

int NestBuilder::FetchAheadLevel(const StageFrame& frame) const {
  bool repeats = false;
  for (int i = frame.first_reduce; i < frame.num_loops(); ++i) {
    if (frame.stage.loop(i).kind != IterKind::kReduce ||
        KindOf(frame.stage.annotation(i)) != ir::LoopKind::kSerial ||
        std::ranges::find(frame.guard_levels, i) != frame.guard_levels.end()) {
      return -1;
    }
    repeats = repeats || frame.bounds.loop_vars[i] >= 0;
    const std::vector<int> here = attachments_.At(frame.s, i);
    if (here.empty()) continue;
    const bool can = std::ranges::all_of(here, [&](int a) { return CanFetchAhead(frame, a); });
    return can && repeats ? i : -1;
  }
  return -1;
}

bool NestBuilder::CanFetchAhead(const StageFrame& frame, int a) const {
  if (!attachments_.IsShared(a) || attachments_.IsOfCluster(a) || !attachments_.Inside(a).empty() ||
      state_.stage(a).op->is_reduction())
    return false;
  return std::ranges::none_of(attachments_.Inside(frame.s),
                              [&](int other) { return attachments_.Reads(a, other); });
}

ir::Stmt NestBuilder::EmitFetchAhead(const StageFrame& frame, int level) {
  const ir::Stmt work = EmitLoops(frame, level + 1);
  std::vector<ir::Stmt> fetches;
  std::vector<FetchedSlot> slots;
  for (int a : attachments_.At(frame.s, level)) {
    fetches.push_back(EmitStage(a));
    for (int32_t slot : tables_.SlotsOf(a))
      slots.push_back({slot, schedule::CanCopyAsync(state_, a)});
  }
  std::vector<FetchLoop> loops;
  for (int i = frame.first_reduce; i <= level; ++i) {
    const int32_t var = frame.bounds.loop_vars[i];
    if (var >= 0) loops.push_back({var, frame.ExtentOf(i)});
  }
  const auto copy_var = [&](int32_t var, int64_t extent) {
    bounds_.owners.push_back(bounds_.owners[var]);
    return bounds_.simplifier.AddVar(extent);
  };
  std::vector<ir::Stmt> all = {EmitInit(frame)};
  // The tiles of the last iteration may still be read.
  if (attachments_.RunsRepeatedly(frame.s, frame.first_reduce - 1))
    all.push_back(ir::MakeBarrier(pool_));
  const bool is_of_warpgroups =
      ir::MatrixUnitScopeOf(frame.stage.hints) == ir::MatrixUnitScope::kWarpgroup;
  // A factor that is computed where it is read comes through registers.
  const std::vector<int>& producers = state_.dag()->producers(frame.s);
  const bool is_computed = std::ranges::any_of(producers, [&](int producer) {
    return state_.attach(producer).kind == schedule::Attach::kInlined;
  });
  const PipelineMode mode{
      .depth = frame.stage.buffering,
      .asynchronous = frame.stage.asynchronous,
      .work_first = is_of_warpgroups,
      .spares_one = is_of_warpgroups && !is_computed && IsOfMatrices(*frame.stage.op)};
  all.push_back(
      FetchAhead(program(), loops, slots, mode, ir::MakeSeq(pool_, fetches), work, copy_var));
  ir::Stmt result = ir::MakeSeq(pool_, all);
  for (const FetchedSlot& fetched : slots) result = ir::MakeAlloc(pool_, fetched.slot, result);
  return result;
}

}  // namespace kiln::lower
