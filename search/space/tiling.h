// Tiling primitives shared by the sketch rules. The state must accept them: a refusal is a bug in
// the caller.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "compiler/schedule/state.h"

namespace kiln::search {

// Appends a step that must be legal.
void MustApply(schedule::State& state, schedule::StepPtr step);

// Axes that are not tiled like the others.
struct TilingExceptions {
  // Stays in one piece, as a loop of level `level` of its kind (spatial or reduction).
  struct Whole {
    int axis, level;
  };
  std::vector<Whole> whole;
  // Every tile has one element of this axis: its split has no blanks.
  std::optional<int> blocks_axis = {};
};

// Splits every axis of the stage by the letters of `structure` and reorders level by level: the
// multi-level tiling of Ansor (OSDI 2020, section 4.1). Returns the numbers of the spatial SP
// steps. Axes named in the operator's no_split_at_inner stay whole at the innermost level of their
// kind.
std::vector<int> TileMultiLevel(schedule::State& state, int stage, std::string_view structure,
                                const TilingExceptions& exceptions = {});

// Splits the spatial axes of `consumer` by the first `levels` factors of the given steps and
// reorders level by level, so that the tiled stage can be computed at its loop levels*n-1.
// whole_levels: `consumer` has more axes, the first ones, which stay whole at these levels.
void FollowTiling(schedule::State& state, int consumer, const std::vector<int>& spatial_steps,
                  int levels, const std::vector<int>& whole_levels = {});

// Makes one loop of the reduction loops of an untiled stage and returns its number.
int FuseReduceLoops(schedule::State& state, int stage);

// Spatial iterators are those that split or fused into others; true when the stage has not its
// original loops any more.
bool IsTiled(const schedule::Stage& stage);

bool HasReduceLoop(const schedule::Stage& stage);

}  // namespace kiln::search
