// The other keys that a computation has in logs. A key depends on the names of operators and axes,
// and these differ between versions of TOPI, TVM's library of operators. Kiln's own operators have
// the names that they get when a network is imported into TVM.
#pragma once

#include <vector>

#include "compiler/dag/hash_text.h"

namespace kiln::dag {

// Returns the forms of the operators for each other way to write the computation. These forms of
// TVM v0.19 are known:
//   products of matrices:  T_matmul_NT(i0, i1), T_matmul_NN(i0, i1), T_matmul(ax0, ax1)
//   ReLU, called from Python:  compute(i0, i1, ...)
//   averages of windows:  pool_avg with the number of elements of each window spelled out, with
//     padding counted and without
// Pure function. Most computations have no other forms.
std::vector<std::vector<OpForm>> OtherKeyForms(const Dag& dag);

}  // namespace kiln::dag
