// Under which other keys a computation stands in logs: the library that TVM's operators come from
// has called operators and their axes otherwise from version to version, and what it calls them is
// in the key. Here they are called as in its integration with networks.
#pragma once

#include <vector>

#include "compiler/dag/hash_text.h"

namespace kiln::dag {

// For each other way to write the computation the forms of its operators. Known are those of
// version 0.19:
//   products of matrices:  T_matmul_NT(i0, i1), T_matmul_NN(i0, i1), T_matmul(ax0, ax1)
//   ReLU, called from Python:  compute(i0, i1, ...)
//   averages of windows:  pool_avg with the number of elements of each window spelled out, with
//     padding counted and without
// Pure function. None for most computations.
std::vector<std::vector<OpForm>> OtherKeyForms(const Dag& dag);

}  // namespace kiln::dag
