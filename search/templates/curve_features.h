// What a model sees of how a program's loops reuse memory, whatever loops it has: the features
// "curve" of autotvm (TVM v0.8, GetCurveSampleFeatureFlatten of src/autotvm/touch_extractor.cc;
// the context relation features of Chen et al., Learning to Optimize Tensor Programs, NeurIPS 2018,
// section 4).
//
// Each access of the deepest loops, one for each tensor (the last one of the tensor and its copies
// in shared memory and registers), has for every loop around it a point: how many elements the loops
// from there on touch ("count"), how often each ("reuse"), and how many iterations the loops down to
// there have ("topdown"), as log2. With a point of zeros before them, and each of the three lists
// sorted, they are four step functions: reuse over count, count over reuse, topdown over count,
// count over topdown. Each is sampled at 0, 1, ... 19, where it gives two numbers: its value at the
// last step that begins there or before, and the distance from that step.
//
// So a row is 160 numbers for each tensor, in the order of the accesses' names; programs for other
// shapes have rows of the same layout as long as the same tensors are in their deepest loops.
//
// autotvm takes any of several accesses of a tensor that stand in one loop; here it is the last.
// And a loop of one iteration is none here (loop_touches.h), which adds no step there either, but
// may make other loops the deepest.
//
// Cost: that of LoopFeatures.
#pragma once

#include <vector>

#include "compiler/ir/program.h"

namespace kiln::search {

std::vector<float> CurveFeatures(const ir::Program& program);

}  // namespace kiln::search
