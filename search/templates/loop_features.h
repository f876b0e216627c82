// What a model sees of a program's loops: the features "itervar" of autotvm (TVM v0.8,
// src/autotvm/touch_extractor.cc; Chen et al., Learning to Optimize Tensor Programs, NeurIPS 2018,
// section 4).
//
// Of each loop, in the order of the program: its extent, how deep it stands, the product of the
// extents of the loops down to it, and the most that an access in it touches; what kind of loop it
// is, one of 11; how many additions, multiplications and divisions stand in it; and for each access
// inside of it, in the order of the buffers' names: stride and modulus by which the loop moves it,
// how many elements the loops from here on touch, how often each, and the same for what one thread
// does of it. Numbers are sign(x) * log2(|x| + 1), extents and counts log2(x + 1).
//
// Loops of one iteration are none in a program, so rows of one template differ in layout: those of a
// direct convolution for a GPU have some 90 lengths (curve_features.h has one). A shorter row is
// filled up with zeros.
//
// Cost: linear in loops times accesses.
#pragma once

#include <vector>

#include "compiler/ir/program.h"

namespace kiln::search {

std::vector<float> LoopFeatures(const ir::Program& program);

}  // namespace kiln::search
