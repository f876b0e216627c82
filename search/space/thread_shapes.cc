#include "search/space/thread_shapes.h"

#include <algorithm>
#include <bit>
#include <set>

#include "base/numbers/integers.h"
#include "compiler/ir/traverse.h"
#include "compiler/schedule/steps/steps.h"
#include "search/space/stage_view.h"
#include "search/space/tiling.h"

namespace kiln::search {
namespace {

using schedule::AnnotateStep;
using schedule::Annotation;
using schedule::As;
using schedule::Attach;
using schedule::SplitStep;
using schedule::State;
using schedule::StepPtr;

constexpr int64_t kMostSerial = 16, kMostRows = 32, kMostTile = 256;
// Of a tile: what a warp moves along one axis at once, and a part or a multiple of that.
constexpr int64_t kRuns[] = {16, 32, 64, 128};

// The loop of the stage that one of the annotations right behind step i binds so.
std::optional<int> BoundBehind(std::span<const StepPtr> steps, size_t i, Annotation annotation) {
  for (size_t next = i + 1; next < steps.size(); ++next) {
    const auto* bind = As<AnnotateStep>(*steps[next]);
    if (bind == nullptr || bind->stage_id != steps[i]->stage()) break;
    if (bind->annotation == annotation) return bind->loop;
  }
  return std::nullopt;
}

std::vector<int64_t> PowersOfTwo(int64_t first, int64_t last) {
  std::vector<int64_t> powers = {first};
  while (powers.back() * 2 <= last) powers.push_back(powers.back() * 2);
  return powers;
}

}  // namespace

std::vector<LengthRole> LengthRoles(std::span<const StepPtr> steps, size_t i) {
  const SplitStep* split = As<SplitStep>(*steps[i]);
  if (split == nullptr || !split->inner_to_outer || split->lengths.size() > 3) return {};
  const int lengths = static_cast<int>(split->lengths.size());
  const int thread =
      BoundBehind(steps, i, Annotation::kThreadX).value_or(split->loop) - split->loop;
  if (thread >= 1 && thread <= lengths) {
    std::vector<LengthRole> roles(static_cast<size_t>(lengths), LengthRole::kLanes);
    std::fill(roles.begin(), roles.begin() + thread - 1, LengthRole::kSerial);
    roles[static_cast<size_t>(thread) - 1] = LengthRole::kThreads;
    return roles;
  }
  if (lengths != 1) return {};
  if (BoundBehind(steps, i, Annotation::kThreadY) == split->loop + 1) return {LengthRole::kRows};
  if (IsCopyTile(steps, i)) return {LengthRole::kTile};
  return {};
}

bool IsCopyTile(std::span<const StepPtr> steps, size_t i) {
  const SplitStep* split = As<SplitStep>(*steps[i]);
  if (split == nullptr || split->lengths.size() != 1) return false;
  while (i > 0 && As<SplitStep>(*steps[i - 1]) != nullptr &&
         As<SplitStep>(*steps[i - 1])->lengths.size() == 1 &&
         steps[i - 1]->stage() == split->stage_id)
    --i;
  return i > 0 && schedule::Is<schedule::CacheReadStep>(*steps[i - 1]);
}

bool SharesRowsOut(std::span<const StepPtr> steps, size_t i) {
  const SplitStep* split = As<SplitStep>(*steps[i]);
  if (split == nullptr || split->inner_to_outer || split->lengths.size() != 1 ||
      i + 2 >= steps.size() || !schedule::Is<schedule::RfactorStep>(*steps[i + 1]))
    return false;
  const std::vector<LengthRole> roles = LengthRoles(steps, i + 2);
  return !roles.empty() && roles[0] == LengthRole::kThreads;
}

std::vector<int64_t> LengthChoices(LengthRole role, int64_t extent, int64_t max_lanes,
                                   const target::HardwareParams& hardware) {
  switch (role) {
    case LengthRole::kSerial:
      return PowersOfTwo(1, std::min(extent, kMostSerial));
    case LengthRole::kRows: {
      std::vector<int64_t> rows = PowersOfTwo(1, std::min(extent, kMostRows));
      // Blocks of a short axis are full where their rows divide it.
      for (int64_t n = 3; extent <= 2 * kMostRows && n <= std::min(extent, kMostRows); ++n) {
        if (extent % n == 0 && !std::has_single_bit(static_cast<uint64_t>(n))) rows.push_back(n);
      }
      std::ranges::sort(rows);
      return rows;
    }
    case LengthRole::kLanes: {
      std::vector<int64_t> lanes = PowersOfTwo(1, max_lanes);
      std::erase_if(lanes, [extent](int64_t n) { return extent % n != 0; });
      return lanes;
    }
    case LengthRole::kTile: {
      std::vector<int64_t> tiles = PowersOfTwo(1, std::min(extent, kMostTile));
      if (extent <= kMostTile && tiles.back() != extent) tiles.push_back(extent);
      return tiles;
    }
    case LengthRole::kThreads:
      break;
  }
  std::vector<int64_t> threads = {hardware.warp_size};
  while (threads.back() < extent && threads.back() * 2 <= hardware.max_threads_per_block)
    threads.push_back(threads.back() * 2);
  return threads;
}

int64_t MostLanes(const dag::Dag& dag, const target::HardwareParams& hardware) {
  int64_t bytes = hardware.vector_unit_bytes;
  for (int i = 0; i < dag.size(); ++i) bytes = std::min<int64_t>(bytes, dag.op(i).type().bytes());
  return std::max<int64_t>(1, hardware.vector_unit_bytes / std::max<int64_t>(1, bytes));
}

std::vector<int64_t> PartsOfWarp(int64_t terms, int64_t max_lanes,
                                 const target::HardwareParams& hardware) {
  if (terms >= hardware.warp_size * max_lanes) return {};
  return PowersOfTwo(std::max(1, hardware.warp_size / 8), hardware.warp_size / 2);
}

int64_t RandomThreads(int64_t extent, const target::HardwareParams& hardware, Rng& rng) {
  return PickFrom(rng, LengthChoices(LengthRole::kThreads, extent, 1, hardware));
}

std::vector<int64_t> RandomFlatShape(int64_t extent, int64_t max_lanes,
                                     const target::HardwareParams& hardware, Rng& rng) {
  const auto pick = [&](LengthRole role, int64_t of) {
    return PickFrom(rng, LengthChoices(role, of, max_lanes, hardware));
  };
  const int64_t lanes = pick(LengthRole::kLanes, 0);  // the last vector may be part of one
  const int64_t vectors = CeilDiv(extent, lanes);
  const int64_t threads = pick(LengthRole::kThreads, vectors);
  const int64_t serial = pick(LengthRole::kSerial, CeilDiv(vectors, threads));
  return {serial, threads, lanes};
}

std::optional<int> CopiedStageIn(const State& state, int s) {
  if (state.attach(s).kind != Attach::kRoot || state.NumAttached(s) == 0 ||
      HasReduceLoop(state.stage(s)) || HasCrossThreadReduction(state, s))
    return std::nullopt;
  for (int f = 0; f < s; ++f) {
    if (state.attach(f).kind == Attach::kIter && state.attach(f).stage == s &&
        state.stage(f).asks_for_shared())
      return f;
  }
  return std::nullopt;
}

bool IsCopied(const State& state, int s) {
  return state.attach(s).kind == Attach::kIter && CopiedStageIn(state, state.attach(s).stage) == s;
}

std::vector<std::optional<int>> SourceOrder(const dag::Operator& op, ir::Expr load) {
  const auto spatial = static_cast<int32_t>(op.axes().size());
  std::vector<std::optional<int>> order;
  for (ir::Expr index : load->args()) {
    std::set<int> axes;
    ir::Visit(index, [&](ir::Expr e) {
      if (e->op == ir::Op::kVar && e->id < spatial) axes.insert(e->id);
    });
    order.push_back(axes.size() == 1 ? std::optional(*axes.begin()) : std::nullopt);
  }
  return order;
}

std::vector<int64_t> RandomCopyTile(std::span<const int64_t> extents,
                                    std::span<const std::optional<int>> source_order, Rng& rng) {
  std::vector<int64_t> tile(extents.size(), 1);
  // Takes axes from the innermost on until their run is long enough.
  const auto cover = [&](int64_t run, auto first, auto last) {
    for (; first != last && run > 1; ++first) {
      if (!first->has_value()) continue;
      const auto axis = static_cast<size_t>(**first);
      tile[axis] = std::max(tile[axis], std::min(extents[axis], run));
      run = CeilDiv(run, tile[axis]);
    }
  };
  std::vector<std::optional<int>> axes(extents.size());
  for (size_t i = 0; i < axes.size(); ++i) axes[i] = static_cast<int>(i);
  cover(PickFrom(rng, std::span(kRuns)), axes.rbegin(), axes.rend());
  cover(PickFrom(rng, std::span(kRuns)), source_order.rbegin(), source_order.rend());
  return tile;
}

bool IsKeptRow(const State& state, int s) {
  const Attach& at = state.attach(s);
  return at.kind == Attach::kIter && state.stage(s).asks_for_shared() &&
         state.attach(at.stage).kind == Attach::kRoot && !HasReduceLoop(state.stage(at.stage)) &&
         HasCrossThreadReduction(state, at.stage);
}

std::optional<RowThreads> ThreadsOfKeptRow(const State& state, int s) {
  const Attach& at = state.attach(s);
  std::vector<int> stages = state.AttachedTo(at.stage, at.loop);
  stages.push_back(at.stage);
  for (const int stage : stages) {
    for (const int step : SplitStepsOf(state, stage)) {
      const std::vector<LengthRole> roles = LengthRoles(state.steps(), static_cast<size_t>(step));
      const auto threads = std::ranges::find(roles, LengthRole::kThreads);
      if (threads != roles.end())
        return RowThreads{step, static_cast<int>(threads - roles.begin())};
    }
  }
  return std::nullopt;
}

}  // namespace kiln::search
