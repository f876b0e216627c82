// Tiling primitives shared by the sketch rules. The state must accept them: a refusal is a bug in
// the caller.
#pragma once

#include <string_view>
#include <vector>

#include "compiler/schedule/state.h"

namespace kiln::search {

// Appends a step that must be legal.
void MustApply(schedule::State& state, schedule::StepPtr step);

// Splits every axis of the stage by the letters of `structure` and reorders level by level (facts
// §3.3). Returns the numbers of the spatial SP steps. Axes named in the operator's
// no_split_at_inner stay whole at the innermost level of their kind.
std::vector<int> TileMultiLevel(schedule::State& state, int stage, std::string_view structure);

// Splits the spatial axes of `consumer` by the first `levels` factors of the given steps and
// reorders level by level, so that the tiled stage can be computed at its loop levels*n-1.
void FollowTiling(schedule::State& state, int consumer, const std::vector<int>& spatial_steps,
                  int levels);

// Makes one loop of the reduction loops of an untiled stage and returns its number.
int FuseReduceLoops(schedule::State& state, int stage);

// Spatial iterators are those that split or fused into others; true when the stage has not its
// original loops any more.
bool IsTiled(const schedule::Stage& stage);

bool HasReduceLoop(const schedule::Stage& stage);

}  // namespace kiln::search
