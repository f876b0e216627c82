#include "search/space/tiling.h"

#include <algorithm>

#include "compiler/schedule/steps/steps.h"

namespace kiln::search {

using schedule::IterKind;
using schedule::Stage;
using schedule::State;

void MustApply(State& state, schedule::StepPtr step) {
  const Status status = state.Apply(step);
  KILN_CHECK(status.ok(), "{} refused: {}\n{}", step->ToJson(), Message(status),
             schedule::PrintLoops(state));
}

std::vector<int> TileMultiLevel(State& state, int s, std::string_view structure,
                                const TilingExceptions& exceptions) {
  const int spatial_levels = static_cast<int>(std::count(structure.begin(), structure.end(), 'S'));
  const int reduce_levels = static_cast<int>(std::count(structure.begin(), structure.end(), 'R'));
  const Stage fresh = state.stage(s);
  const std::vector<std::string>& whole = fresh.op->attrs().no_split_at_inner;

  // pieces[axis]: how many loops it becomes. Loops of one axis stay together until the reorder.
  // whole_level[axis]: where an axis of one piece stands.
  std::vector<int> spatial_steps, pieces, whole_level;
  int position = 0;
  for (int axis = 0; axis < static_cast<int>(fresh.loops.size()); ++axis) {
    const bool reduce = fresh.loop(axis).kind == IterKind::kReduce;
    const int levels = reduce ? reduce_levels : spatial_levels;
    int level = levels - 1;
    bool keep =
        std::find(whole.begin(), whole.end(), schedule::LoopName(fresh, axis)) != whole.end();
    for (const TilingExceptions::Whole& exception : exceptions.whole) {
      if (exception.axis != axis) continue;
      keep = true;
      level = exception.level;
    }
    whole_level.push_back(level);
    if (keep || levels <= 1) {
      pieces.push_back(1);
      ++position;
      continue;
    }
    if (!reduce) spatial_steps.push_back(static_cast<int>(state.steps().size()));
    const int64_t length = axis == exceptions.blocks_axis ? 1 : 0;
    MustApply(state, std::make_shared<schedule::SplitStep>(s, position, fresh.loop(axis).extent,
                                                           std::vector<int64_t>(levels - 1, length),
                                                           true));
    pieces.push_back(levels);
    position += levels;
  }

  std::vector<int> order;
  int spatial_level = 0, reduce_level = 0;
  for (char letter : structure) {
    const bool reduce = letter == 'R';
    const int level = reduce ? reduce_level++ : spatial_level++;
    int first = 0;
    for (int axis = 0; axis < static_cast<int>(pieces.size()); ++axis) {
      if ((fresh.loop(axis).kind == IterKind::kReduce) == reduce) {
        if (pieces[axis] > 1) {
          order.push_back(first + level);
        } else if (level == whole_level[axis]) {
          order.push_back(first);
        }
      }
      first += pieces[axis];
    }
  }
  MustApply(state, std::make_shared<schedule::ReorderStep>(s, order));
  return spatial_steps;
}

void FollowTiling(State& state, int consumer, const std::vector<int>& spatial_steps, int levels,
                  const std::vector<int>& whole_levels) {
  const int n = static_cast<int>(spatial_steps.size());
  const int first = static_cast<int>(whole_levels.size());
  int position = first;
  for (int step : spatial_steps) {
    MustApply(state, std::make_shared<schedule::FollowSplitStep>(consumer, position, step, levels));
    position += levels + 1;
  }
  std::vector<int> order;
  for (int level = 0; level <= levels; ++level) {
    for (int axis = 0; axis < first; ++axis) {
      if (level == whole_levels[axis]) order.push_back(axis);
    }
    for (int axis = 0; axis < n; ++axis) order.push_back(first + axis * (levels + 1) + level);
  }
  MustApply(state, std::make_shared<schedule::ReorderStep>(consumer, order));
}

int FuseReduceLoops(State& state, int s) {
  const int first = static_cast<int>(state.stage(s).op->axes().size());
  const int count = static_cast<int>(state.stage(s).op->reduce_axes().size());
  if (count > 1) {
    std::vector<int> loops(count);
    for (int i = 0; i < count; ++i) loops[i] = first + i;
    MustApply(state, std::make_shared<schedule::FuseStep>(s, loops));
  }
  return first;
}

bool IsTiled(const Stage& stage) {
  return static_cast<int>(stage.loops.size()) != stage.num_axes();
}

bool HasReduceLoop(const Stage& stage) {
  for (int i = 0; i < static_cast<int>(stage.loops.size()); ++i) {
    if (stage.loop(i).kind != IterKind::kSpatial && stage.loop(i).kind != IterKind::kSpecial)
      return true;
  }
  return false;
}

}  // namespace kiln::search
