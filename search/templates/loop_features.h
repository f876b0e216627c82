// Features of the loops of a program: the features "itervar" of autotvm (TVM v0.8,
// src/autotvm/touch_extractor.cc; Chen et al., Learning to Optimize Tensor Programs, NeurIPS 2018,
// section 4).
//
// Each loop, in the order of the program, has these features: its extent, its depth, the product of
// the extents of the loops down to it, and the most elements that an access in it touches; its
// kind, one of 11; the numbers of additions, multiplications and divisions in it. Then, for each
// access inside it, in the order of the buffers' names: the stride and the modulus by which the
// loop moves the access, the number of elements that the loops from here on touch, how often each
// is touched, and the last two for the part of one thread. Numbers are sign(x) * log2(|x| + 1),
// extents and counts log2(x + 1).
//
// Loops of one iteration do not exist in a program, so rows of one template differ in layout: rows
// of a direct convolution for a GPU have some 90 lengths (curve_features.h has one). A shorter row
// is filled up with zeros.
//
// Cost: linear in loops times accesses.
#pragma once

#include <vector>

#include "compiler/ir/program.h"

namespace kiln::search {

std::vector<float> LoopFeatures(const ir::Program& program);

}  // namespace kiln::search
