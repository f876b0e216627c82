// What kind of work an operator is, which decides what a good schedule of it looks like. The four
// kinds are those of the first auto-scheduler from a declaration alone (L. Zheng, apache/tvm issue
// 2954, 2019).
//
// Pure functions. Cost: linear in the accesses of the operator.
#pragma once

#include <string_view>

#include "compiler/dag/access_analysis.h"
#include "compiler/dag/dag.h"

namespace kiln::search {

enum class OperatorClass {
  kPlaceholder,
  // A reduction that reads elements several times: products, convolutions. Tiled in all levels.
  kComplexReduction,
  // A reduction that reads every element once: sums, maxima, pooling. Its parts are shared out.
  kSimpleReduction,
  // No reduction, and computed where it is read, or the loops of an output: activations, biases,
  // copies. Parallel outside, vectors inside.
  kDirectCompute,
  // No reduction, but more than a value that its reader can compute again at no cost: padding,
  // exponentials, packing. Where it is computed is a choice of its own.
  kLocationTunable,
};

std::string_view OperatorClassName(OperatorClass kind);  // "complex reduction"

// Of operator `op` of the DAG that `analysis` is of.
OperatorClass ClassOf(const dag::Dag& dag, const dag::AccessAnalysis& analysis, int op);

// Of the DAG: that of the operator that computes the most terms; of equal ones a reduction counts
// more, and the last one.
OperatorClass ClassOf(const dag::Dag& dag);

}  // namespace kiln::search
