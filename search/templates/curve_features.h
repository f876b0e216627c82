// Features of how the loops of a program reuse memory, for programs with any loops: the features
// "curve" of autotvm (TVM v0.8, GetCurveSampleFeatureFlatten of src/autotvm/touch_extractor.cc; the
// context relation features of Chen et al., Learning to Optimize Tensor Programs, NeurIPS 2018,
// section 4).
//
// One access in the deepest loops stands for each tensor: the last access of the tensor or of its
// copies in shared memory and registers. The access has a point for every loop around it: the
// number of elements that the loops from there on touch ("count"), how often each is touched
// ("reuse"), and the number of iterations of the loops down to there ("topdown"), as log2. A point
// of zeros is added before them, and each of the three lists is sorted. The lists then give four
// step functions: reuse over count, count over reuse, topdown over count, count over topdown. Each
// function is sampled at 0, 1, ... 19, and each sample gives two numbers: the value at the last
// step that begins there or before, and the distance from that step.
//
// So a row has 160 numbers for each tensor, in the order of the accesses' names. Programs for other
// shapes have rows of the same layout as long as their deepest loops have the same tensors.
//
// Differences from autotvm: if one loop has several accesses of a tensor, autotvm takes any of
// them, and Kiln takes the last. Loops of one iteration do not exist here (loop_touches.h); in
// autotvm they add no step either, but may change which loops are the deepest.
//
// Cost: that of LoopFeatures.
#pragma once

#include <vector>

#include "compiler/ir/program.h"

namespace kiln::search {

std::vector<float> CurveFeatures(const ir::Program& program);

}  // namespace kiln::search
